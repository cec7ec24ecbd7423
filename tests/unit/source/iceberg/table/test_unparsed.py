"""A table with a variant is opened through every kind of catalog, and never written to."""

from __future__ import annotations

import contextlib
import http.server
import json
import logging
import threading
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.hive import HiveCatalog

from golden_iceberg import golden_copy
from tidegate.config import read_source
from tidegate.errors import SourceFileDamaged, TableIdentityChanged, UnsupportedFeature
from tidegate.source.iceberg import IcebergSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from golden_iceberg import Golden

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def _add_variant(raw: dict[str, Any]) -> None:
    for schema in raw["schemas"]:
        field = {"id": 80, "name": "strange", "type": "variant", "required": False}
        schema["fields"].append(field)


@pytest.fixture
def table(tmp_path: Path) -> Golden:
    return golden_copy("append_v3", tmp_path)


@pytest.fixture
def sql(table: Golden, tmp_path: Path) -> dict[str, str]:
    catalog = {"name": "lake", "type": "sql", "uri": f"sqlite:///{tmp_path}/c.db"}
    lake = load_catalog(**catalog)
    lake.create_namespace("raw")
    lake.register_table("raw.orders", str(table.metadata))
    table.edit_metadata(_add_variant)
    return catalog


@pytest.fixture
def hive(table: Golden, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    kept = {"table_type": "ICEBERG", "metadata_location": str(table.metadata)}
    entry = SimpleNamespace(dbName="raw", tableName="orders", parameters=kept)
    monkeypatch.setattr(HiveCatalog, "_create_hive_client", lambda *_: contextlib.nullcontext())
    monkeypatch.setattr(HiveCatalog, "_get_hive_table", lambda *_: entry)
    table.edit_metadata(_add_variant)
    return {"name": "lake", "type": "hive", "uri": "thrift://127.0.0.1:9"}


class _Lake(http.server.BaseHTTPRequestHandler):
    """As much of a REST catalog as loading one table takes."""

    location = ""
    config: ClassVar[dict[str, str]] = {}

    def do_GET(self) -> None:
        answer: dict[str, Any] = {"defaults": {}, "overrides": {}}
        if "/tables/" in self.path:
            answer = {
                "metadata-location": self.location,
                "metadata": json.loads(Path(self.location).read_text()),
                "config": self.config,
            }
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def rest(table: Golden) -> Iterator[dict[str, str]]:
    _Lake.location, _Lake.config = str(table.metadata), {}
    table.edit_metadata(_add_variant)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Lake)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    uri = f"http://127.0.0.1:{server.server_port}"
    yield {"name": "lake", "type": "rest", "uri": uri}
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(params=["sql", "hive", "rest"])
def opened(request: pytest.FixtureRequest, table: Golden) -> Callable[..., IcebergSource]:
    """Open the table through a catalog, with more keys of `source`."""
    catalog = request.getfixturevalue(request.param)
    rewrite = table.config()["location_rewrite"]

    def give(**keys: Any) -> IcebergSource:
        place = {"catalog": catalog, "table": "raw.orders", "location_rewrite": rewrite}
        return IcebergSource(
            read_source({"kind": "iceberg", **place, **keys}), retry_pause_seconds=0
        )

    return give


def test_other_columns_are_read_through_a_catalog_as_without_one(
    opened: Callable[..., IcebergSource], table: Golden
) -> None:
    columns = {"read": {"columns": ["id"]}, "start": "earliest"}
    through, without = opened(**columns), table.source(**columns)
    pin = through.timeline.pin(NOW)

    assert pin == without.timeline.pin(NOW)
    assert through.timeline.instants(pin, None) == without.timeline.instants(pin, None)


def test_column_with_the_variant_is_refused_through_a_catalog(
    opened: Callable[..., IcebergSource],
) -> None:
    with pytest.raises(UnsupportedFeature, match=r"of type variant \('strange'\)"):
        opened().timeline.pin(NOW)


def test_identity_is_checked_through_a_catalog(opened: Callable[..., IcebergSource]) -> None:
    with pytest.raises(TableIdentityChanged):
        opened(read={"columns": ["id"]}).timeline.pin(NOW, expected_identity="another")


def test_metadata_that_is_damaged_besides_is_refused(
    opened: Callable[..., IcebergSource], table: Golden
) -> None:
    table.edit_metadata(lambda raw: raw.pop("last-column-id"))

    with pytest.raises(SourceFileDamaged):
        opened(read={"columns": ["id"]}).timeline.pin(NOW)


def test_checkpoint_stays_untagged_and_the_table_as_it_is(
    opened: Callable[..., IcebergSource], table: Golden, caplog: pytest.LogCaptureFixture
) -> None:
    source = opened(read={"columns": ["id"]}, protect_cursor="tag")
    pin = source.timeline.pin(NOW)
    assert pin.head
    before = table.metadata.read_text()

    with caplog.at_level(logging.WARNING):
        source.protection.protect("orders", pin.head)

    assert "cannot be tagged" in caplog.text
    assert table.metadata.read_text() == before


def test_rest_catalog_that_plans_alone_is_refused_for_that(
    rest: dict[str, str], table: Golden
) -> None:
    _Lake.config = {"scan-planning-mode": "server"}
    keys = {"catalog": rest, "table": "raw.orders", "read": {"columns": ["id"]}}

    with pytest.raises(UnsupportedFeature, match="only its catalog may plan"):
        IcebergSource(read_source({"kind": "iceberg", **keys})).timeline.pin(NOW)
