"""A pipeline never reads what it publishes, and never publishes into a table's own folder."""

from __future__ import annotations

import json
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from small_lake import SmallLake, load, publish, published_ids
from tidegate.cli.app import app
from tidegate.config import load_pipeline
from tidegate.errors import PlacesOverlap, WorkInsideTarget
from tidegate.ledger import Ledger, open_engine
from tidegate.pipeline import Pipeline, open_pipeline

if TYPE_CHECKING:
    from click.testing import Result

ROWS = 300


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    """A folder into which somebody drops files: 300 rows."""
    folder = tmp_path / "lake" / "landing"
    folder.mkdir(parents=True)
    at = [datetime(2026, 2, 1 + row % 3, tzinfo=UTC) for row in range(ROWS)]
    rows = pa.table({"id": range(ROWS), "at": pa.array(at, pa.timestamp("us", "UTC"))})
    pq.write_table(rows, folder / "drop.parquet")
    (tmp_path / "link").symlink_to(folder)
    return folder


def write(root: Path, name: str = "orders", **changed: Any) -> Path:
    content = {
        "name": name,
        "source": {"kind": "files", "path": f"{root}/lake/landing"},
        "event_time": "at",
        "target": {"path": f"{root}/lake/published/orders", "partition_by": {"dt": "day(at)"}},
    }
    for key, value in changed.items():
        content[key] = {**content[key], **value}
    file = root / f"{name}.yaml"
    file.write_text(json.dumps(content))
    return file


def opened(file: Path) -> Pipeline:
    return open_pipeline(file, ledger=f"sqlite:///{file.parent}/ledger.db")


INSIDE = {
    "target in the source": ("target.path", {"path": "{root}/lake/landing/out"}),
    "target is the source": ("target.path", {"path": "{root}/lake/landing"}),
    "target hidden in the source": ("target.path", {"path": "{root}/lake/landing/_out"}),
    "target in the source by a link": ("target.path", {"path": "{root}/link/out"}),
    "source in the target": ("target.path", {"path": "{root}/lake", "work": "{root}/work"}),
    "work in the source": ("target.work", {"work": "{root}/lake/landing/.work"}),
    "work in the source by a link": ("target.work", {"work": "{root}/link/.work"}),
    "source in the work": ("target.work", {"path": "{root}/published", "work": "{root}/lake"}),
}


@pytest.mark.follows("PlacesOverlap")
@pytest.mark.parametrize("case", sorted(INSIDE))
def test_overlap_with_a_source_of_files_is_refused_and_the_proposal_works(
    landing: Path, tmp_path: Path, case: str
) -> None:
    key, places = INSIDE[case]
    target = {name: place.format(root=tmp_path) for name, place in places.items()}
    file = write(tmp_path, target=target)

    with pytest.raises(PlacesOverlap) as refused:
        load_pipeline(file)

    assert refused.value.key == key
    assert str(landing) in str(refused.value)
    assert refused.value.place in str(refused.value)
    assert sorted(item.name for item in landing.iterdir()) == ["drop.parquet"]
    # What the message says to do.
    mended = {**target, key.removeprefix("target."): refused.value.proposal}
    pipeline = opened(write(tmp_path, target=mended))
    for _ in range(3):
        load(pipeline)
        publish(pipeline)
    announced = pipeline.ledger.windows.all()
    assert len(announced) == 1
    assert announced[0].summary is not None
    assert announced[0].summary.rows_read == ROWS


def test_overlap_that_only_the_environment_knows_is_refused_when_opened(
    landing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLACE", str(landing))
    file = write(tmp_path, target={"path": "${env:PLACE}/out"})

    load_pipeline(file)
    with pytest.raises(PlacesOverlap, match=str(landing)):
        opened(file)


@pytest.mark.follows("WorkInsideTarget")
def test_work_in_the_target_by_a_link_is_refused(landing: Path, tmp_path: Path) -> None:
    target = tmp_path / "lake" / "published" / "orders"
    target.mkdir(parents=True)
    (tmp_path / "elsewhere").symlink_to(target)

    with pytest.raises(WorkInsideTarget):
        load_pipeline(write(tmp_path, target={"work": f"{tmp_path}/elsewhere/work"}))

    # What the message says to do.
    pipeline = opened(write(tmp_path, target={"work": f"{target}.work"}))
    load(pipeline)
    publish(pipeline)
    assert published_ids(target) == {"dt=2026-02-01": list(range(0, ROWS, 3))}


def table_folder(lake: SmallLake) -> Path:
    return Path(lake.table.metadata.location.removeprefix("file://"))


TABLE_INSIDE = {
    "target is the table": lambda table: {"path": str(table)},
    "target in the table": lambda table: {"path": f"{table}/data/out"},
    "table in the target": lambda table: {"path": str(table.parent)},
    "work in the table": lambda table: {"work": f"{table}/work"},
}


@pytest.mark.on_disk
@pytest.mark.parametrize("by", ["catalog", "metadata"])
@pytest.mark.parametrize("case", sorted(TABLE_INSIDE))
def test_overlap_with_the_iceberg_table_is_refused_and_the_proposal_works(
    tmp_path: Path, case: str, by: str
) -> None:
    lake = SmallLake(tmp_path / "lake")
    ids = lake.commit({1: 2, 2: 1})
    table = table_folder(lake)
    if by == "metadata":
        place = lake.table.metadata_location.removeprefix("file://")
        lake.source = {"kind": "iceberg", "metadata": place}
    files = sorted(table.rglob("*"))
    target = TABLE_INSIDE[case](table)

    with pytest.raises(PlacesOverlap) as refused:
        load(lake.pipeline(target=target))

    assert sorted(table.rglob("*")) == files
    assert str(table) in str(refused.value)
    # What the message says to do.
    mended = {**target, refused.value.key.removeprefix("target."): refused.value.proposal}
    load(lake.pipeline(target=mended))
    publish(lake.pipeline(target=mended))
    out = published_ids(Path(mended.get("path", str(lake.target))))
    assert out == {"dt=2026-02-01": ids[:2]}


def test_files_target_in_the_folder_of_another_table_is_refused(
    landing: Path, tmp_path: Path
) -> None:
    lake = SmallLake(tmp_path / "other")
    lake.commit({1: 1})
    table = table_folder(lake)

    with pytest.raises(PlacesOverlap, match=str(table)) as refused:
        load(opened(write(tmp_path, target={"path": f"{table}/data"})))

    load(opened(write(tmp_path, target={"path": refused.value.proposal})))


def command(home: Path, *arguments: str) -> Result:
    environment = {
        "TIDEGATE_HOME": str(home),
        "TIDEGATE_LEDGER": f"sqlite:///{home}/ledger.db",
        "TIDEGATE_PIPELINES": str(home / "pipelines"),
    }
    return CliRunner().invoke(app, list(arguments), env=environment)


def test_init_in_the_landing_folder_proposes_a_place_outside(
    landing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.chdir(landing)

    assert command(home, "init", "--from", ".", "--name", "drops").exit_code == 0
    config = load_pipeline(home / "pipelines" / "drops.yaml")
    assert os.path.commonpath([config.target.path, landing]) != str(landing)
    assert command(home, "check", "drops").exit_code == 0
    for _ in range(3):
        command(home, "load", "drops")
        command(home, "publish", "drops")

    ledger = Ledger(open_engine(f"sqlite:///{home}/ledger.db"), "drops")
    assert [item.summary.rows_read for item in ledger.windows.all() if item.summary] == [ROWS]


def test_init_with_a_target_inside_the_source_is_refused(landing: Path, tmp_path: Path) -> None:
    target = str(landing / "out")

    done = command(tmp_path, "init", "--from", str(landing), "--name", "drops", "--target", target)

    assert (done.exit_code, "PlacesOverlap" in done.output) == (2, True)
    assert not (tmp_path / "pipelines" / "drops.yaml").exists()


def test_check_refuses_a_target_inside_the_source(landing: Path, tmp_path: Path) -> None:
    (tmp_path / "pipelines").mkdir()
    file = write(tmp_path, target={"path": str(landing / "out")})
    file.rename(tmp_path / "pipelines" / "orders.yaml")

    done = command(tmp_path, "check", "orders")

    assert done.exit_code == 1
    assert "must not be inside one another" in " ".join(done.output.split())


def test_check_refuses_a_target_in_the_table_of_a_catalog(tmp_path: Path) -> None:
    lake = SmallLake(tmp_path / "lake")
    lake.commit({1: 1})
    (tmp_path / "pipelines").mkdir()
    file = lake.file(target={"path": str(table_folder(lake) / "out")})
    file.rename(tmp_path / "pipelines" / "orders.yaml")

    done = command(tmp_path, "check", "orders")

    assert done.exit_code == 1
    assert "must not be inside one another" in " ".join(done.output.split())


@pytest.mark.on_disk
def test_table_that_came_to_stand_in_the_target_is_not_to_be_moved(tmp_path: Path) -> None:
    lake = SmallLake(tmp_path / "lake")
    lake.commit({1: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    moved = lake.table.location().removeprefix("file://")
    shutil.copytree(moved, lake.target, dirs_exist_ok=True)

    (found,) = lake.pipeline().findings()

    assert str(lake.target) in found
    assert "move" not in found
    assert "another table" in found
