"""A table that cannot be opened is refused by what is wrong, and asked again if that can help."""

from __future__ import annotations

import http.server
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from golden_iceberg import golden_copy
from tidegate.config import read_source
from tidegate.errors import (
    SecretMissing,
    SourceFileDamaged,
    SourceNotFound,
    SourceUnreachable,
    UnsupportedFeature,
)
from tidegate.model.plan import Pin
from tidegate.source.iceberg import IcebergSource
from tidegate.source.iceberg.table.paths import rewrite

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def _source(**keys: Any) -> IcebergSource:
    config = read_source({"kind": "iceberg", **keys})
    return IcebergSource(config, retry_pause_seconds=0)


def _catalog(place: Path) -> dict[str, str]:
    return {
        "name": "lake",
        "type": "sql",
        "uri": f"sqlite:///{place}/c.db",
        "warehouse": f"file://{place}",
    }


class _Unavailable(http.server.BaseHTTPRequestHandler):
    asked = 0

    def do_GET(self) -> None:
        type(self).asked += 1
        self.send_error(503)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def unavailable() -> Iterator[str]:
    _Unavailable.asked = 0
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Unavailable)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(("failures", "asked"), [(None, 4), (0, 1), (1, 2)])
def test_catalog_that_does_not_answer_is_asked_again_as_often_as_said(
    unavailable: str, failures: int | None, asked: int
) -> None:
    catalog = {"name": "lake", "type": "rest", "uri": unavailable}
    said = {} if failures is None else {"max_planning_failures": failures}
    source = _source(catalog=catalog, table="raw.orders", **said)

    with pytest.raises(SourceUnreachable):
        source.timeline.pin(NOW)

    assert _Unavailable.asked == asked


def test_catalog_with_a_closed_port_is_unreachable() -> None:
    catalog = {"name": "lake", "type": "rest", "uri": "http://127.0.0.1:9"}

    with pytest.raises(SourceUnreachable, match=r"lake\.raw\.orders"):
        _source(catalog=catalog, table="raw.orders").timeline.pin(NOW)


def test_database_of_a_catalog_that_cannot_be_opened_is_unreachable(tmp_path: Path) -> None:
    catalog = _catalog(tmp_path / "nowhere")

    with pytest.raises(SourceUnreachable):
        _source(catalog=catalog, table="raw.orders").timeline.pin(NOW)


def test_table_that_the_catalog_does_not_know_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFound, match=r"lake\.raw\.orders"):
        _source(catalog=_catalog(tmp_path), table="raw.orders").timeline.pin(NOW)


def test_catalog_that_is_not_configured_is_not_found() -> None:
    with pytest.raises(SourceNotFound, match="catalog 'nowhere'"):
        _source(table="nowhere.raw.orders").timeline.pin(NOW)


def test_secret_of_the_catalog_is_resolved_when_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = {**_catalog(tmp_path), "uri": "${env:LAKE_URI}"}
    schema = Schema(NestedField(1, "id", LongType()))
    lake = load_catalog(**_catalog(tmp_path))
    lake.create_namespace("raw")
    lake.create_table("raw.orders", schema)
    source = _source(catalog=catalog, table="raw.orders")

    with pytest.raises(SecretMissing):
        source.timeline.pin(NOW)
    monkeypatch.setenv("LAKE_URI", f"sqlite:///{tmp_path}/c.db")
    pin = source.timeline.pin(NOW)

    assert pin.schema == (("id", "int64"),)
    assert "sqlite" not in pin.to_text()


def test_metadata_file_that_is_missing_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFound):
        _source(metadata=str(tmp_path / "v1.metadata.json")).timeline.pin(NOW)


def test_directory_without_a_version_hint_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFound, match=r"version-hint\.text"):
        _source(metadata=str(tmp_path)).timeline.pin(NOW)


@pytest.mark.parametrize("case", ["append_v2", "gzip_metadata_v2"])
@pytest.mark.parametrize("hint", ["4", "4\n", "3", "v4", "v4{gz}.metadata.json"])
def test_table_directory_is_opened_by_its_version_hint(
    tmp_path: Path, case: str, hint: str
) -> None:
    table = golden_copy(case, tmp_path)
    metadata = table.folder / "table" / "metadata"
    # A later version than the hint's is newer; to this test the fourth is the last.
    for later in metadata.glob("v5*"):
        later.unlink()
    gz = ".gz" if case.startswith("gzip") else ""
    (metadata / "version-hint.text").write_text(hint.format(gz=gz))

    pin = _source(metadata=str(table.folder / "table")).timeline.pin(NOW)

    assert pin.details["metadata"] == str(metadata / f"v4{gz}.metadata.json")


def test_version_hint_of_a_file_that_is_gone_is_not_found(tmp_path: Path) -> None:
    table = golden_copy("append_v2", tmp_path)
    (table.folder / "table" / "metadata" / "version-hint.text").write_text("9")

    with pytest.raises(SourceNotFound, match="version hint says 9"):
        _source(metadata=str(table.folder / "table")).timeline.pin(NOW)


def test_metadata_that_is_no_json_is_damaged(tmp_path: Path) -> None:
    table = golden_copy("append_v2", tmp_path)
    table.metadata.write_text("{")

    with pytest.raises(SourceFileDamaged):
        table.source().timeline.pin(NOW)


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: whole[:-9],
        lambda whole: whole[:60] + bytes(9) + whole[69:],
        lambda whole: b"{}" + whole,
    ],
    ids=["cut", "overwritten", "no-gzip"],
)
def test_compressed_metadata_that_is_damaged_is_no_lost_connection(
    damage: Any, tmp_path: Path
) -> None:
    table = golden_copy("gzip_metadata_v2", tmp_path)
    table.metadata.write_bytes(damage(table.metadata.read_bytes()))

    with pytest.raises(SourceFileDamaged, match="no Iceberg metadata"):
        table.source().timeline.pin(NOW)


@pytest.mark.parametrize(
    ("change", "feature"),
    [
        (lambda raw: raw.update({"format-version": 4}), "format 4"),
        (lambda raw: raw["schemas"][0]["fields"][0].update(type="variant"), "variant"),
        (lambda raw: raw["snapshots"][0].pop("manifest-list"), "inline manifests"),
    ],
    ids=["format-4", "variant", "inline-manifests"],
)
def test_feature_that_is_not_read_is_named(change: Any, feature: str, tmp_path: Path) -> None:
    table = golden_copy("append_v2", tmp_path)
    table.edit_metadata(change)

    with pytest.raises(UnsupportedFeature) as refused:
        table.source().timeline.pin(NOW)

    assert feature in refused.value.feature


def test_pin_is_served_from_newer_metadata_when_its_file_is_gone(tmp_path: Path) -> None:
    table = golden_copy("append_v2", tmp_path)
    pin = table.source().timeline.pin(NOW)
    old = Pin(
        pin.identity,
        pin.head,
        pin.schema,
        {**pin.details, "metadata": f"{tmp_path}/v0.metadata.json"},
    )

    assert table.source().timeline.instants(old, None) == table.source().timeline.instants(
        pin, None
    )


@pytest.mark.parametrize(
    ("location", "rewritten"),
    [
        ("/a/b/c", "/long/c"),
        ("/a/bc", "/short/bc"),
        ("/a", "/short"),
        ("s3://a/b", "s3://a/b"),
    ],
    ids=["longest-prefix", "whole-components", "prefix-itself", "no-prefix"],
)
def test_rewrite_takes_the_longest_prefix_of_whole_components(
    location: str, rewritten: str
) -> None:
    assert rewrite(location, {"/a": "/short", "/a/b/": "/long/"}) == rewritten
