"""One suite over every catalog that runs here: SQL in a file, REST and Hive as real servers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog

from catalog_servers import CatalogServer, catalog_server
from small_lake import NOW, local
from tidegate import read_committed
from tidegate.errors import (
    RefNotFound,
    SourceUnreachable,
    SourceVanished,
    TableIdentityChanged,
    UnsupportedFeature,
)
from tidegate.model.run import Run
from tidegate.pipeline import Pipeline, open_pipeline
from tidegate.source.iceberg.table.tagging import tag_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.table import Table

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string())])
RUN = Run("run", "cli")


@dataclass
class Lake:
    """A table in a catalog, and a pipeline over it."""

    properties: dict[str, str]
    root: Path
    server: CatalogServer | None
    made: int = 0

    @property
    def catalog(self) -> Catalog:
        """The catalog as another program would open it."""
        return load_catalog(**self.properties)

    def create(self) -> Table:
        """Make the table."""
        catalog = self.catalog
        if ("raw",) not in catalog.list_namespaces():
            catalog.create_namespace("raw")
        location = f"file://{self.root}/{self.properties['type']}-{self.made}"
        self.made += 1
        return catalog.create_table("raw.orders", SCHEMA, location=location)

    def append(self, *ids: int) -> None:
        """Append rows."""
        rows = pa.table({"id": list(ids), "day": ["a"] * len(ids)}, SCHEMA)
        self.catalog.load_table("raw.orders").append(rows)

    def pipeline(self, **keys: Any) -> Pipeline:
        """Open the pipeline with more keys of `source`."""
        said = {"kind": "iceberg", "catalog": self.properties, "table": "raw.orders", **keys}
        raw = {
            "name": "orders.daily",
            "source": {"max_planning_failures": 0, **said},
            "target": {"path": str(self.root / "published")},
            "commit": {"trigger": "process-time"},
        }
        file = self.root / "orders.yaml"
        file.write_text(_yaml(raw))
        return open_pipeline(file, ledger=f"sqlite:///{self.root}/ledger.db")

    def take(self, **keys: Any) -> list[int]:
        """Load and publish; the ids that stand then."""
        pipeline = self.pipeline(**keys)
        pipeline.load(RUN, NOW, local)
        assert [item.error for item in pipeline.publish_all("cli", NOW) if item.error] == []
        found = read_committed(self.root / "published").to_table()
        return sorted(found.column("id").to_pylist()) if found.num_rows else []


def _yaml(raw: dict[str, Any]) -> str:
    import yaml

    return str(yaml.safe_dump(raw))


@pytest.fixture(
    scope="module", params=["sql", "rest", pytest.param("hive", marks=pytest.mark.slow)]
)
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[dict[str, str], CatalogServer | None]]:
    place = tmp_path_factory.mktemp(request.param)
    with catalog_server(request.param, place) as server:
        uri = f"sqlite:///{place}/catalog.db"
        sql = {"name": "lake", "type": "sql", "uri": uri, "warehouse": f"file://{place}"}
        yield (server.properties if server else sql), server


@pytest.fixture
def lake(served: tuple[dict[str, str], CatalogServer | None], tmp_path: Path) -> Iterator[Lake]:
    made = Lake(*[served[0], tmp_path, served[1]])
    made.create()
    yield made
    if ("raw", "orders") in made.catalog.list_tables("raw"):
        made.catalog.drop_table("raw.orders")


def test_pipeline_takes_in_what_others_append(lake: Lake) -> None:
    lake.append(1, 2)
    assert lake.take() == [1, 2]

    lake.append(3)

    assert lake.take() == [1, 2, 3]


def test_table_without_snapshots_gives_an_empty_run(lake: Lake) -> None:
    assert lake.take() == []


def test_checkpoint_is_kept_by_a_tag_that_moves_with_it(lake: Lake) -> None:
    lake.append(1)
    lake.take(protect_cursor="tag")
    first = lake.catalog.load_table("raw.orders")
    lake.append(2)
    lake.take(protect_cursor="tag")
    second = lake.catalog.load_table("raw.orders")
    lake.take(protect_cursor="tag")

    name = tag_name("orders.daily")
    assert name == "tidegate-orders.daily"
    refs = [table.metadata.refs[name].snapshot_id for table in (first, second)]
    assert refs == [table.metadata.current_snapshot_id for table in (first, second)]
    # Where the tag stands already, nothing is written.
    assert lake.catalog.load_table("raw.orders").metadata_location == second.metadata_location


def test_source_is_only_read_unless_the_checkpoint_is_to_be_kept(lake: Lake) -> None:
    lake.append(1)
    before = lake.catalog.load_table("raw.orders").metadata_location

    lake.take()

    assert lake.catalog.load_table("raw.orders").metadata_location == before


def test_columns_beside_a_variant_are_read_through_the_catalog(lake: Lake) -> None:
    lake.append(1, 2)
    location = lake.catalog.load_table("raw.orders").metadata_location
    _add_variant(Path("/" + location.removeprefix("file:").lstrip("/")))

    with pytest.raises(UnsupportedFeature, match="'strange'"):
        lake.take()

    assert lake.take(read={"columns": ["id", "day"]}) == [1, 2]


def _add_variant(metadata: Path) -> None:
    raw = json.loads(metadata.read_text())
    field = {"id": 3, "name": "strange", "type": "variant", "required": False}
    raw["schemas"][0]["fields"].append(field)
    raw |= {"format-version": 3, "next-row-id": 0, "last-column-id": 3}
    metadata.write_text(json.dumps(raw))
    # Hadoop's checksum, which the REST server writes beside it and checks.
    metadata.with_name(f".{metadata.name}.crc").unlink(missing_ok=True)


def test_branch_and_tag_are_read_through_the_catalog(lake: Lake) -> None:
    lake.append(1)
    table = lake.catalog.load_table("raw.orders")
    with table.manage_snapshots() as changes:
        changes.create_tag(table.metadata.current_snapshot_id or 0, "eow")
    lake.append(2)

    assert lake.take(tag="eow") == [1]
    with pytest.raises(RefNotFound):
        lake.pipeline(branch="eow").source.timeline.pin(NOW)


def test_table_that_was_dropped_and_made_again_is_refused(lake: Lake) -> None:
    lake.append(1)
    published = lake.take()
    lake.catalog.drop_table("raw.orders")
    # It may as well be another catalog at the same address: the next load asks again.
    with pytest.raises(SourceVanished):
        lake.take()
    lake.create()
    lake.append(9)

    with pytest.raises(TableIdentityChanged):
        lake.take()

    state = lake.pipeline().ledger
    assert [item.window.sequence for item in state.windows.all()] == [1]
    assert published == [1]


@pytest.mark.follows("SourceUnreachable")
def test_catalog_that_went_away_is_asked_again_later(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    if lake.server is None:
        pytest.skip("a file does not go away")
    lake.append(1)
    lake.take()

    away = {**lake.properties, "uri": lake.properties["uri"].rpartition(":")[0] + ":9"}
    monkeypatch.setattr(lake, "properties", away)
    with pytest.raises(SourceUnreachable):
        lake.take()
    monkeypatch.undo()
    lake.append(2)

    assert lake.take() == [1, 2]


def test_catalog_that_plans_scans_itself_is_refused(lake: Lake) -> None:
    lake.append(1)

    with pytest.raises(UnsupportedFeature, match="only its catalog may plan scans"):
        lake.take(catalog={**lake.properties, "scan-planning-mode": "server"})


def test_secret_stands_in_the_environment_only(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.append(1)
    monkeypatch.setenv("LAKE_URI", lake.properties["uri"])
    hidden = {**lake.properties, "uri": "${env:LAKE_URI}"}

    assert lake.take(catalog=hidden) == [1]

    kept = [path for path in lake.root.rglob("*.json*") if ".tidegate" in str(path)]
    assert kept
    assert not any(lake.properties["uri"] in path.read_text() for path in kept if path.is_file())


@pytest.mark.follows("SourceLibraryFailed")
def test_mistake_in_the_settings_of_the_library_is_named(tmp_path: Path) -> None:
    place = tmp_path / "lake"
    place.mkdir()
    uri = f"sqlite:///{place}/catalog.db"
    sql = {"name": "lake", "type": "sql", "uri": uri, "warehouse": f"file://{place}"}
    lake = Lake(sql, tmp_path, None)
    lake.create()
    lake.append(1, 2)
    lake.pipeline()
    settings = tmp_path / ".pyiceberg.yaml"
    settings.write_text("catalog:\n  other: {uri: x\n")
    known = {
        "PYICEBERG_HOME": str(tmp_path),
        "TIDEGATE_LEDGER": f"sqlite:///{tmp_path}/ledger.db",
        "TIDEGATE_PIPELINES": str(tmp_path),
    }

    def tidegate(*words: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "tidegate.cli", *words]
        return subprocess.run(
            line, env=os.environ | known, capture_output=True, text=True, check=False
        )

    refused = tidegate("load", "orders.daily")
    settings.write_text("catalog:\n  other:\n    uri: x\n")
    mended = tidegate("load", "orders.daily")

    said = " ".join(refused.stderr.split())
    assert refused.returncode == 1
    assert "SourceLibraryFailed" in said
    assert "line 2" in said
    assert "`.pyiceberg.yaml`" in said
    assert "Traceback" not in said
    assert mended.returncode == 0, mended.stderr
