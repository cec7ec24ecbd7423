"""Deletes of a Hudi table are told as long as a file tells them, and otherwise refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hudi_windows import opened, rows
from hudi_writer import TIME, HudiTable, Rows, gone
from tidegate.errors import HudiChangesLost

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from hudi_writer import Content

GROUP, OTHER = "0000-1", "0000-2"
VERSIONS = pytest.mark.parametrize("version", [6, 8, 9])
KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
SERVICES = pytest.mark.parametrize("service", ["compaction", "clustering"])


def row(key: str, value: str, time: str = "") -> dict[str, Any]:
    return {"k": key, "ts": 1, "v": value} | ({TIME: time} if time else {})


def made(root: Path, version: int = 9, kind: str = "MERGE_ON_READ") -> HudiTable:
    return HudiTable(root / "table", version, kind, ordering="")


def told(table: HudiTable, start: str, end: str | None = None) -> list[tuple[Any, ...]]:
    """Key, value and kind of what `with_deletes` returns."""
    return [(it[0], it[2], it[3]) for it in rows(table, "with_deletes", start, end)]


def served(table: HudiTable, service: str, *content: Content) -> tuple[str, list[Path]]:
    """A log over a base file, a service that moves the rows, and one more write.

    Returns the write of the log, and the files that the service took the place of.
    """
    first = table.insert(GROUP, [row("a", "1"), row("b", "1")])
    second = table.upsert(GROUP, *content)
    old = [path for path in table.root.iterdir() if GROUP in path.name]
    if service == "compaction":
        table.compact(GROUP, [row("a", "1", first)])
        table.upsert(GROUP, Rows([row("a", "3")]))
    else:
        table.cluster([GROUP], OTHER, [row("a", "1", first)])
        table.upsert(OTHER, Rows([row("a", "3")]))
    return second, old


def remove(files: Sequence[Path]) -> None:
    for path in files:
        path.unlink()


# ── The file that told a delete is there, or not ──


@VERSIONS
@SERVICES
def test_delete_whose_log_was_moved_away_is_told_while_the_log_is_there(
    tmp_path: Path, service: str, version: int
) -> None:
    table = made(tmp_path, version)
    served(table, service, gone("b"))

    assert told(table, table.times[0]) == [("a", "3", "UPSERT"), ("b", None, "DELETE")]


@VERSIONS
@SERVICES
@pytest.mark.parametrize("is_clean_known", [True, False], ids=["clean", "archived clean"])
def test_delete_whose_log_was_moved_away_and_cleaned_is_refused(
    tmp_path: Path, service: str, version: int, *, is_clean_known: bool
) -> None:
    table = made(tmp_path, version)
    second, old = served(table, service, gone("b"))
    if is_clean_known:
        table.clean(table.times[-1])
    remove(old)

    with pytest.raises(HudiChangesLost, match=second):
        told(table, table.times[0])
    assert told(table, second) == [("a", "3", "UPSERT")]


@VERSIONS
@SERVICES
def test_log_without_deletes_need_not_be_there(tmp_path: Path, service: str, version: int) -> None:
    table = made(tmp_path, version)
    _, old = served(table, service, Rows([row("a", "2")]))
    table.clean(table.times[-1])
    remove(old)

    assert told(table, table.times[0]) == [("a", "3", "UPSERT")]


@VERSIONS
def test_log_that_does_not_count_its_deletes_has_to_be_there(tmp_path: Path, version: int) -> None:
    table = made(tmp_path, version)
    other = table.begin()
    table.forget(other.requested)
    second, old = served(table, "compaction", other.block(gone("b")))
    remove(old)

    with pytest.raises(HudiChangesLost, match=second):
        told(table, table.times[0])


@VERSIONS
def test_delete_in_one_of_two_partitions_is_refused_for_its_own_log(
    tmp_path: Path, version: int
) -> None:
    columns = {"hoodie.table.partition.fields": "v"}
    table = HudiTable(tmp_path / "table", version, ordering="", properties=columns)
    first = table.insert(GROUP, [row("a", "p"), row("b", "p")], partition="p")
    table.insert(OTHER, [row("c", "q"), row("d", "q")], partition="q")
    third = table.upsert(GROUP, gone("b"), partition="p")
    fourth = table.upsert(OTHER, Rows([row("c", "q")]), partition="q")
    old = [*table.root.rglob("*.parquet"), *table.root.rglob(".*.log.*")]
    table.compact(GROUP, [row("a", "p", first)], partition="p")
    table.compact(OTHER, [row("c", "q", fourth), row("d", "q", table.times[1])], partition="q")
    remove([path for path in old if OTHER in path.name])
    second = table.times[1]
    assert told(table, second) == [("b", "p", "DELETE"), ("c", "q", "UPSERT")]

    remove([path for path in old if GROUP in path.name])

    with pytest.raises(HudiChangesLost, match=third):
        told(table, second)


@VERSIONS
def test_log_of_a_group_that_was_overwritten_need_not_be_there(
    tmp_path: Path, version: int
) -> None:
    """All keys that stood in it before the window are told."""
    table = made(tmp_path, version)
    first = table.insert(GROUP, [row("a", "1"), row("b", "1")])
    table.upsert(GROUP, gone("b"))
    write = table.begin("replacecommit")
    write.base(OTHER, [row("a", "3")])
    write.replaced[""] = [GROUP]
    write.done("INSERT_OVERWRITE")
    remove(list(table.root.glob(".*.log.*")))

    found = told(table, first)

    assert ("b", None, "DELETE") in found
    assert ("a", "3", "UPSERT") in found


@VERSIONS
def test_file_that_was_rewritten_without_a_row_and_clustered_is_refused_when_it_is_gone(
    tmp_path: Path, version: int
) -> None:
    table = made(tmp_path, version, "COPY_ON_WRITE")
    first = table.insert(GROUP, [row("a", "1"), row("b", "1")])
    second = table.insert(GROUP, [row("a", "1", first)], previous=first, deletes=1)
    table.cluster([GROUP], OTHER, [row("a", "1", first)])
    third = table.insert(OTHER, [row("a", "3")], previous=table.times[-1])
    assert told(table, first) == [("a", "3", "UPSERT"), ("b", None, "DELETE")]

    remove(list(table.root.glob(f"{GROUP}*_{second}.parquet")))

    with pytest.raises(HudiChangesLost, match=second):
        told(table, first)
    assert told(table, second, third) == [("a", "3", "UPSERT")]


# ── A clustering that was requested before the last write to its groups ──


@VERSIONS
@KINDS
def test_delete_in_a_group_that_was_written_while_its_clustering_was_pending_is_told(
    tmp_path: Path, version: int, kind: str
) -> None:
    table, first, old = overtaken(tmp_path, version, kind)

    assert ("b", None, "DELETE") in told(table, first)
    assert {it[0] for it in told(table, first)} <= {"a", "b"}

    remove(old)

    with pytest.raises(HudiChangesLost):
        told(table, first)


def overtaken(root: Path, version: int, kind: str) -> tuple[HudiTable, str, list[Path]]:
    """A table that deleted `b`, and updated `a` while the group was clustered."""
    table = made(root, version, kind)
    first = table.insert(GROUP, [row("a", "1"), row("b", "1"), row("c", "1")])
    is_cow = kind == "COPY_ON_WRITE"
    rest = [row("a", "1", first), row("c", "1", first)]
    if is_cow:
        second = table.insert(GROUP, rest, previous=first, deletes=1)
    else:
        second = table.upsert(GROUP, gone("b"))
    clustering = table.begin("clustering" if table.has_times else "replacecommit")
    clustering.base(OTHER, rest)
    clustering.replaced[""] = [GROUP]
    if is_cow:
        table.insert(GROUP, [row("a", "2"), row("c", "1", first)], previous=second)
    else:
        table.upsert(GROUP, Rows([row("a", "2")]))
    clustering.done("CLUSTER")
    old = [path for path in table.root.iterdir() if GROUP in path.name and first not in path.name]
    return table, first, old or list(table.root.glob(f".{GROUP}*"))


# ── Writes while a bucket was split, which write into the old and the new group ──


def split(root: Path) -> tuple[HudiTable, str]:
    """A table that deleted `b` while its group was split; the start of that window."""
    table = made(root)
    first = table.insert(GROUP, [row("a", "1"), row("b", "1")])
    clustering = table.begin("clustering")
    write = table.begin()
    write.log(GROUP, gone("b"))
    write.log(OTHER, gone("b"), append=root / "table" / f".{OTHER}_{clustering.requested}.log.1")
    write.done()
    clustering.base(OTHER, [row("a", "1", first), row("b", "1", first)])
    clustering.replaced[""] = [GROUP]
    clustering.done("CLUSTER")
    return table, first


def test_change_that_was_written_into_both_groups_of_a_split_is_returned_once(
    tmp_path: Path,
) -> None:
    table, first = split(tmp_path)

    assert [(it[0], it[3]) for it in rows(table, "changelog", first)] == [("b", "DELETE")]
    assert told(table, first) == [("b", None, "DELETE")]
    found = opened(table, "changelog")
    (report,) = found.source.timeline.describe(found.pin, found.writes[1:])
    assert report.rows_removed == 1


def test_delete_that_one_of_the_groups_of_a_split_tells_is_told(tmp_path: Path) -> None:
    table, first = split(tmp_path)
    remove([path for path in table.root.iterdir() if GROUP in path.name])

    assert told(table, first) == [("b", None, "DELETE")]


def test_delete_that_none_of_the_groups_of_a_split_tells_is_refused(tmp_path: Path) -> None:
    table, first = split(tmp_path)
    old = [path for path in table.root.iterdir() if ".log." in path.name]
    table.compact(OTHER, [row("a", "1", first)])
    remove(old)

    with pytest.raises(HudiChangesLost):
        told(table, first)
