"""The archive of a timeline is read whole, or the error says which file, and whether it passes."""

from __future__ import annotations

import errno
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_metadata
from hudi_writer import HudiTable
from tidegate.errors import HudiTimelineMoved, StorageSilent, TimelineFileDamaged
from tidegate.source.hudi.files import TableFiles
from tidegate.source.hudi.table.properties import TableProperties
from tidegate.source.hudi.timeline.archive import (
    ArchivedInstant,
    read_archive,
    read_archived_orders,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LAYOUTS = pytest.mark.parametrize("version", [6, 9])


def archived(root: Path, version: int, writes: int = 3) -> tuple[HudiTable, list[str]]:
    """A table whose writes were archived, each into a file of its own."""
    table = HudiTable(root / "table", version)
    times = [table.insert(f"g{at}", [{"k": "a", "ts": at, "v": "x"}]) for at in range(writes)]
    for time in times:
        table.archive(time)
    return table, times


def properties(table: HudiTable) -> TableProperties:
    text = (table.root / ".hoodie" / "hoodie.properties").read_text()
    return TableProperties.parse("trips", text)


def found(table: HudiTable) -> tuple[ArchivedInstant, ...]:
    return read_archive(TableFiles(str(table.root)), properties(table))


def orders(table: HudiTable) -> frozenset[tuple[str, str]]:
    return read_archived_orders(TableFiles(str(table.root)), properties(table))


def files(table: HudiTable) -> list[Path]:
    """The files with instants."""
    folder = table.timeline / "history" if table.has_times else table.root / ".hoodie" / "archived"
    return sorted(it for it in folder.iterdir() if not it.name.startswith(("manifest", "_")))


@LAYOUTS
def test_archived_writes_come_in_their_order(tmp_path: Path, version: int) -> None:
    table, times = archived(tmp_path, version)

    assert [it.requested for it in found(table)] == times
    assert [it.metadata.operation for it in found(table)] == ["INSERT"] * 3


def test_archived_writes_come_in_the_order_in_which_they_were_done(tmp_path: Path) -> None:
    table = HudiTable(tmp_path / "table", 9)
    late = table.begin()
    first = table.insert("g0", [{"k": "a", "ts": 1, "v": "x"}])
    late.base("g1", [{"k": "b", "ts": 1, "v": "x"}])
    late.done("INSERT")
    table.archive(late.requested, first)

    assert [it.requested for it in found(table)] == [first, late.requested]
    assert orders(table) == {it.order for it in found(table)}


def test_archived_write_that_was_not_done_is_none(tmp_path: Path) -> None:
    table, times = archived(tmp_path, 6)
    folder = table.root / ".hoodie" / "archived"
    begun = (times[0], times[0], "deltacommit", {})
    hudi_metadata.archive_of_logs(folder, 1, [begun], states=["REQUESTED", "INFLIGHT"])

    assert [it.requested for it in found(table)] == times[1:]


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("cut", [1, 40, -1], ids=["last byte", "half a block", "broken byte"])
def test_torn_block_of_an_archive_is_named_and_not_passed_over(
    tmp_path: Path, at: int, cut: int
) -> None:
    table, _ = archived(tmp_path, 6)
    torn = files(table)[at]
    content = torn.read_bytes()
    torn.write_bytes(content[:-cut] if cut > 0 else content[:-1] + bytes([content[-1] ^ 1]))

    with pytest.raises(TimelineFileDamaged, match=f"{torn.name}: .*no whole block"):
        found(table)


def changed(column: str, value: Any) -> Callable[[Path], None]:
    """Put a value into a column of a history file."""

    def change(path: Path) -> None:
        rows = [{**row, column: value} for row in pq.read_table(path).to_pylist()]
        pq.write_table(pa.Table.from_pylist(rows), path)

    return change


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(cut, id="cut"),
        pytest.param(lambda path: path.write_bytes(b""), id="empty"),
        pytest.param(changed("instantTime", None), id="no instant"),
        pytest.param(changed("instantTime", 7), id="a number as instant"),
        pytest.param(changed("completionTime", "soon"), id="no completion time"),
        pytest.param(changed("metadata", b"xx"), id="no metadata"),
        pytest.param(changed("metadata", b"Obj\x01xx"), id="no avro"),
        pytest.param(changed("metadata", "[]"), id="metadata as text"),
    ],
)
def test_damaged_history_is_named_with_its_file(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    table, _ = archived(tmp_path, 9)
    path = files(table)[1]
    damage(path)

    with pytest.raises(TimelineFileDamaged, match=path.name):
        _ = [it.metadata for it in found(table)]


@pytest.mark.parametrize(
    "damage", [cut, changed("instantTime", None), changed("completionTime", "soon")]
)
def test_damaged_times_are_named_with_their_file(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    table, _ = archived(tmp_path, 9)
    path = files(table)[1]
    damage(path)

    with pytest.raises(TimelineFileDamaged, match=path.name):
        orders(table)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("_version_", b"x"),
        ("_version_", b"\xff"),
        ("_version_", b""),
        ("manifest_3", b"{"),
        ("manifest_3", b"[]"),
        ("manifest_3", b"\xff\xff"),
        ("manifest_3", b'{"files": 7}'),
        ("manifest_3", b'{"files": [7]}'),
        ("manifest_3", b'{"files": [{"name": "x"}]}'),
    ],
)
def test_damaged_list_of_the_history_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    table, _ = archived(tmp_path, 9)
    (table.timeline / "history" / name).write_bytes(content)

    with pytest.raises(TimelineFileDamaged, match=name):
        found(table)


@pytest.mark.parametrize("field", ["commitTime", "actionType"])
def test_archived_metadata_that_is_none_is_named(field: str) -> None:
    instant = ArchivedInstant("1", "2", "commit", {field: b"\xff"}, "/lake/archive")

    with pytest.raises(TimelineFileDamaged, match="/lake/archive"):
        _ = instant.metadata


@LAYOUTS
def test_file_of_the_archive_that_vanished_after_it_was_listed_passes(
    tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, _ = archived(tmp_path, version)
    gone = files(table)[1]
    if version == 6:
        list_folder = TableFiles.folder

        def listing(of: TableFiles, below: str) -> Any:
            listed = list_folder(of, below)
            gone.unlink()
            return listed

        monkeypatch.setattr(TableFiles, "folder", listing)
    else:
        gone.unlink()

    for read in [found, orders] if version == 9 else [found]:
        with pytest.raises(HudiTimelineMoved, match=gone.name):
            read(table)


def test_manifest_that_vanished_passes(tmp_path: Path) -> None:
    table, _ = archived(tmp_path, 9)
    (table.timeline / "history" / "manifest_3").unlink()

    with pytest.raises(HudiTimelineMoved, match="manifest_3"):
        found(table)


@LAYOUTS
def test_store_that_is_silent_while_the_archive_is_read_passes(
    tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, _ = archived(tmp_path, version)
    open_file = TableFiles.open

    def opening(of: TableFiles, below: str) -> pa.NativeFile:
        if below.endswith(files(table)[1].name):
            raise OSError(errno.ETIMEDOUT, "timed out")
        return open_file(of, below)

    monkeypatch.setattr(TableFiles, "open", opening)

    for read in [found, orders] if version == 9 else [found]:
        with pytest.raises(StorageSilent, match=r"timed out"):
            read(table)


def test_history_that_no_manifest_names_is_not_read(tmp_path: Path) -> None:
    table, times = archived(tmp_path, 9)
    manifest = table.timeline / "history" / "manifest_3"
    listed = json.loads(manifest.read_text())["files"]
    manifest.write_text(json.dumps({"files": listed[1:]}))

    assert [it.requested for it in found(table)] == times[1:]
