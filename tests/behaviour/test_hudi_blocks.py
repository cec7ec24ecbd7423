"""Blocks of written logs, of several writes, taken back, torn or compacted, are read as by Hudi."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hudi_logs import HFILE, INSTANT, MAGIC, block
from hudi_windows import between, opened, planned, rows, state
from hudi_writer import Deletes, HudiTable, Rollback, Rows, gone
from tidegate.errors import HudiLogUnsupported, HudiPropertyUnsupported, NoLogFile
from tidegate.read.merge import ReadOptions

if TYPE_CHECKING:
    from pathlib import Path

    from hudi_writer import Content

GROUP = "0000-1"
VERSIONS = pytest.mark.parametrize("version", [6, 8, 9])


def row(key: str, value: str, ts: int = 1) -> dict[str, object]:
    return {"k": key, "ts": ts, "v": value}


def table_with(root: Path, version: int = 9, **keys: str) -> HudiTable:
    """A table by commit time with three rows."""
    table = HudiTable(root / "table", version, ordering="", **keys)
    table.insert(GROUP, [row("a", "1"), row("b", "1"), row("c", "1")])
    return table


def values(found: list[tuple[object, ...]]) -> dict[object, object]:
    assert len({it[0] for it in found}) == len(found)
    return {it[0]: it[2] for it in found}


# ── Several blocks, files and writes ──


@VERSIONS
@pytest.mark.parametrize("parquet", [False, True], ids=["avro", "parquet"])
def test_blocks_of_one_write_are_merged_in_their_order(
    tmp_path: Path, version: int, parquet: bool
) -> None:
    table = table_with(tmp_path, version)
    start = table.upsert(GROUP, Rows([]))
    table.upsert(
        GROUP,
        Rows([row("a", "2"), row("a", "3"), row("b", "2")], parquet=parquet),
        gone("a", "c"),
        Rows([row("a", "4")], parquet=parquet),
        gone("b"),
    )

    assert values(state(table)) == {"a": "4"}
    found = rows(table, "with_deletes", start)
    assert {(it[0], it[2], it[3]) for it in found} == {
        ("a", "4", "UPSERT"),
        ("b", None, "DELETE"),
        ("c", None, "DELETE"),
    }


@VERSIONS
def test_logs_of_one_write_are_merged_by_their_numbers(tmp_path: Path, version: int) -> None:
    table = table_with(tmp_path, version)
    write = table.begin()
    for number in (10, 9, 2, 1):
        write.log(GROUP, Rows([row("a", str(number))]), number=number)
    write.done()

    assert values(state(table))["a"] == "10"


@VERSIONS
def test_logs_of_two_write_tokens_are_both_merged(tmp_path: Path, version: int) -> None:
    table = table_with(tmp_path, version)
    write = table.begin()
    write.log(GROUP, Rows([row("a", "late task")]), token="2-0-2")
    write.log(GROUP, Rows([row("a", "task"), row("b", "task")]), token="1-0-1")
    write.done()

    assert values(state(table)) == {"a": "late task", "b": "task", "c": "1"}


@VERSIONS
def test_base_file_that_its_commit_does_not_name_is_not_read(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "table", version)
    write = table.begin()
    write.base(GROUP, [row("a", "tried again")], token="9-9-9", named=False)
    write.base(GROUP, [row("a", "named")], token="1-0-1")
    write.done("INSERT")

    assert values(state(table)) == {"a": "named"}


def mixed(root: Path) -> tuple[HudiTable, list[str]]:
    """A log of version 6 with blocks of done, pending and failed writes."""
    table = table_with(root, 6)
    path = table.begin().log(GROUP, Rows([row("a", "failed")]), named=False)
    failed = path.name and max(table.timeline.glob("*.deltacommit.inflight")).name[:17]
    done = table.begin()
    done.log(GROUP, Rows([row("b", "done")]), append=path)
    done.done()
    taken = table.begin()
    taken.log(GROUP, Rows([row("c", "taken back")]), append=path)
    rollback = table.begin("rollback")
    rollback.log(GROUP, Rollback(taken.requested), append=path, named=False)
    rollback.done("UNKNOWN")
    table.forget(failed, taken.requested)
    pending = table.begin()
    pending.log(GROUP, Rows([row("a", "pending")]), append=path)
    return table, [done.requested, pending.requested]


def test_log_with_blocks_of_many_writes_has_the_done_ones(tmp_path: Path) -> None:
    table, (done, pending) = mixed(tmp_path)
    start = opened(table, "snapshot").writes[0].id

    assert values(state(table)) == {"a": "1", "b": "done", "c": "1"}
    assert values(rows(table, "complete", start)) == {"b": "done"}
    assert values(rows(table, "changelog", start, done)) == {"b": "done"}
    found = opened(table, "complete")
    assert found.pin.head is not None
    assert found.pin.head.id == done < pending


@pytest.mark.parametrize("place", ["same file", "next file"])
@pytest.mark.parametrize("order", ["soon", "three blocks later"])
def test_rollback_takes_back_all_blocks_of_its_target(
    tmp_path: Path, place: str, order: str
) -> None:
    table = table_with(tmp_path, 6)
    taken = table.begin()
    path = taken.log(GROUP, Rows([row("a", "taken back")]), gone("b"))
    later: list[Content] = [Rows([row("c", "2")]), Rows([row("c", "3")]), Rows([row("d", "4")])]
    write = table.begin()
    if order != "soon":
        write.log(GROUP, *later, append=path)
    rollback = table.begin("rollback")
    append = path if place == "same file" else None
    rollback.log(GROUP, Rollback(taken.requested), append=append, named=False)
    if order == "soon":
        write.log(GROUP, *later, append=append)
    table.forget(taken.requested)
    rollback.done("UNKNOWN")
    write.done()

    assert values(state(table)) == {"a": "1", "b": "1", "c": "3", "d": "4"}
    start = opened(table, "snapshot").writes[0].id
    assert values(rows(table, "complete", start)) == {"c": "3", "d": "4"}


# ── Damage ──


def damaged(table: HudiTable, *content: Content) -> tuple[dict[object, object], int]:
    """The values of keys after a write of these blocks, and the spans that were skipped."""
    write = table.begin()
    write.log(GROUP, *content)
    write.done()
    found = opened(table, "snapshot")
    pin, pieces = planned(found, between(found, None, None))
    reader = found.source.reading.reader(pin)
    batches = list(reader.batches(pieces, ReadOptions()))
    made = {row["k"]: row["v"] for batch in batches for row in batch.to_pylist()}
    return made, sum(reader.ignored.damaged.values())


@VERSIONS
@pytest.mark.parametrize("kept", [3, 6, 13, 14, 40, -9, -1])
def test_torn_tail_is_skipped(tmp_path: Path, version: int, kept: int) -> None:
    table = table_with(tmp_path, version)
    torn = table.begin().block(Rows([row("b", "torn")]))[:kept]

    assert damaged(table, Rows([row("a", "2")]), torn) == ({"a": "2", "b": "1", "c": "1"}, 1)


@VERSIONS
@pytest.mark.parametrize("kept", [6, 14, 40, -9, -1])
def test_torn_block_before_a_good_one_is_skipped(tmp_path: Path, version: int, kept: int) -> None:
    table = table_with(tmp_path, version)
    torn = table.begin().block(Rows([row("b", "torn")]))[:kept]

    found = damaged(table, Rows([row("a", "2")]), torn, Rows([row("c", "3")]))

    assert found == ({"a": "2", "b": "1", "c": "3"}, 1)


@pytest.mark.parametrize("by", [-1, 1, 6, 1 << 40])
def test_block_with_a_wrong_length_behind_it_is_skipped(tmp_path: Path, by: int) -> None:
    table = table_with(tmp_path)
    whole = table.begin().block(Rows([row("b", "2")]))
    length = int.from_bytes(whole[-8:], "big") + by
    wrong = whole[:-8] + length.to_bytes(8, "big")

    found = damaged(table, Rows([row("a", "2")]), wrong, Rows([row("c", "3")]))

    assert found == ({"a": "2", "b": "1", "c": "3"}, 1)


def test_magic_within_a_row_is_no_block(tmp_path: Path) -> None:
    table = table_with(tmp_path)
    text = (MAGIC * 3).decode()

    found, skipped = damaged(table, Rows([row("a", text), row("b", "2")]), Rows([row("c", text)]))

    assert (found, skipped) == ({"a": text, "b": "2", "c": text}, 0)


def test_magic_within_a_torn_block_is_not_taken_for_a_row(tmp_path: Path) -> None:
    table = table_with(tmp_path)
    torn = table.begin().block(Rows([row("b", (MAGIC * 3).decode())]))[:-4]

    found, skipped = damaged(table, torn, Rows([row("c", "3")]))

    assert found == {"a": "1", "b": "1", "c": "3"}
    assert skipped >= 1


@VERSIONS
def test_log_of_no_bytes_has_no_records(tmp_path: Path, version: int) -> None:
    table = table_with(tmp_path, version)

    assert damaged(table) == ({"a": "1", "b": "1", "c": "1"}, 0)


def test_file_without_a_block_at_its_beginning_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(NoLogFile):
        damaged(table_with(tmp_path), b"not a log")


@pytest.mark.parametrize("version", [1, 2])
def test_delete_block_of_an_older_version_is_refused(tmp_path: Path, version: int) -> None:
    with pytest.raises(HudiLogUnsupported, match=f"found version {version}"):
        damaged(table_with(tmp_path), Deletes([("a", None)], version))


def test_block_of_another_kind_is_refused_before_the_rows_of_others(tmp_path: Path) -> None:
    table = table_with(tmp_path)
    write = table.begin()
    write.log(GROUP, Rows([row("a", "2")]))
    write.log(GROUP, block(HFILE, {INSTANT: write.requested}, b"x"))
    write.done()
    found = opened(table, "snapshot")
    pin, pieces = planned(found, between(found, None, None))

    with pytest.raises(HudiLogUnsupported, match="found HFILE"):
        next(found.source.reading.reader(pin).batches(pieces, ReadOptions()))


def test_block_of_another_kind_that_was_taken_back_is_passed_over(tmp_path: Path) -> None:
    table = table_with(tmp_path)
    write = table.begin()
    write.log(GROUP, block(HFILE, {INSTANT: write.requested}, b"x"), Rollback(write.requested))
    write.done()

    assert values(state(table)) == {"a": "1", "b": "1", "c": "1"}


@pytest.mark.parametrize("version", [4, 7, 11])
def test_table_of_another_version_is_refused(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "table", version)
    table.insert(GROUP, [row("a", "1")])

    with pytest.raises(HudiPropertyUnsupported, match=rf"table\.version.*{version}"):
        opened(table, "snapshot")


# ── Log compaction ──


def log_compact(table: HudiTable, standing: list[dict[str, object]], *originals: str) -> str:
    write = table.begin("logcompaction")
    write.log(GROUP, Rows(standing, compacted=originals))
    return write.done("LOG_COMPACT")


def compacted_twice(root: Path, version: int) -> tuple[HudiTable, list[str], list[str]]:
    table = HudiTable(root / "table", version, ordering="")
    writes = [table.upsert(GROUP, Rows([row("a", "1"), row("b", "1")]))]
    writes.append(table.upsert(GROUP, Rows([row("a", "2")])))
    inner = log_compact(table, [row("a", "2"), row("b", "1")], *writes)
    writes.append(table.upsert(GROUP, Rows([row("c", "3")])))
    whole = [row("a", "2"), row("b", "1"), row("c", "3")]
    outer = log_compact(table, whole, inner, writes[2])
    writes.append(table.upsert(GROUP, Rows([row("b", "4")])))
    return table, writes, [inner, outer]


@VERSIONS
@pytest.mark.parametrize("deleted", [False, True], ids=["originals kept", "originals deleted"])
def test_log_compaction_of_a_log_compaction_changes_no_row(
    tmp_path: Path, version: int, deleted: bool
) -> None:
    table, writes, services = compacted_twice(tmp_path, version)
    if deleted:
        logs = sorted(table.root.glob(f".{GROUP}_*"), key=lambda path: path.stat().st_mtime_ns)
        for log in logs[:4]:
            log.unlink()

    assert values(state(table)) == {"a": "2", "b": "4", "c": "3"}
    assert values(rows(table, "complete", writes[2])) == {"b": "4"}
    assert values(rows(table, "latest_state", writes[2])) == {"b": "4"}
    assert services[1] > services[0]
    changed = values(rows(table, "complete", writes[0]))
    assert changed.items() >= {"a": "2", "b": "4", "c": "3"}.items()


@VERSIONS
def test_window_that_ends_between_originals_and_log_compaction_has_its_rows(
    tmp_path: Path, version: int
) -> None:
    table, writes, _ = compacted_twice(tmp_path, version)

    assert values(state(table, writes[0])) == {"a": "1", "b": "1"}
    assert values(state(table, writes[1])) == {"a": "2", "b": "1"}
    assert values(rows(table, "complete", writes[0], writes[1])) == {"a": "2"}
    assert values(rows(table, "complete", writes[1], writes[2])) == {"c": "3"}
    assert values(rows(table, "complete", writes[0], writes[2])) == {"a": "2", "c": "3"}


@VERSIONS
def test_change_that_only_a_log_compaction_of_log_compactions_has_is_not_missed(
    tmp_path: Path, version: int
) -> None:
    """It names the log compactions before it, and not the writes that those stood for."""
    table = HudiTable(tmp_path / "table", version, ordering="")
    first = table.upsert(GROUP, Rows([row("a", "1")]))
    table.upsert("0000-2", Rows([row("z", "1")]))
    second = table.upsert(GROUP, Rows([row("b", "2")]))
    inner = [log_compact(table, [row("a", "1"), row("b", "2")], first, second)]
    third = table.upsert(GROUP, Rows([row("c", "3")]))
    fourth = table.upsert(GROUP, Rows([row("d", "4")]))
    inner.append(log_compact(table, [row("c", "3"), row("d", "4")], third, fourth))
    before = set(table.root.glob(f".{GROUP}_*"))
    whole = [row("a", "1"), row("b", "2"), row("c", "3"), row("d", "4")]
    log_compact(table, whole, *inner)
    for log in before:
        log.unlink()

    found = values(rows(table, "complete", first))
    assert found.items() >= {"b": "2", "c": "3", "d": "4", "z": "1"}.items()
    assert values(rows(table, "complete", third)).items() >= {"d": "4"}.items()
