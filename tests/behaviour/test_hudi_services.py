"""Services, overwrites, archives and cleans of written tables change no row but those of writes."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from golden_hudi import NOW
from hudi_metadata import clean_plan, clustering_plan
from hudi_windows import KIND, between, opened, planned, rows, state
from hudi_writer import TIME, HudiTable, Rows, gone
from tidegate.errors import (
    HudiChangesLost,
    HudiFilesCleaned,
    HudiHistoryLost,
    HudiInstantGone,
    HudiInstantUnfinished,
    InstantNotFound,
    TimelineFileDamaged,
)
from tidegate.model.instant import InstantRange
from tidegate.read.merge import ReadOptions
from tidegate.source.hudi.timeline.times import order_of

if TYPE_CHECKING:
    from pathlib import Path

GROUP, OTHER = "0000-1", "0000-2"
VERSIONS = pytest.mark.parametrize("version", [6, 8, 9])
MODES = ("complete", "with_deletes", "changelog", "latest_state", "skip_merge")


def row(key: str, value: str, time: str = "") -> dict[str, Any]:
    found = {"k": key, "ts": 1, "v": value}
    return {**found, TIME: time} if time else found


def values(found: list[tuple[Any, ...]]) -> dict[Any, Any]:
    assert len({it[0] for it in found}) == len(found)
    return {it[0]: it[2] for it in found}


def kinds(found: list[tuple[Any, ...]]) -> dict[Any, tuple[Any, Any]]:
    assert len({it[0] for it in found}) == len(found)
    return {it[0]: (it[2], it[3]) for it in found}


def made(root: Path, version: int = 9, **more: Any) -> HudiTable:
    return HudiTable(root / "table", version, ordering="", **more)


# ── Compaction ──


@VERSIONS
@pytest.mark.parametrize("done", [False, True], ids=["pending", "done"])
def test_compaction_between_writes_changes_no_row(tmp_path: Path, version: int, done: bool) -> None:
    table = made(tmp_path, version)
    first = table.insert(GROUP, [row("a", "1"), row("b", "1"), row("c", "1")])
    second = table.upsert(GROUP, Rows([row("a", "2")]), gone("b"))
    compaction = table.pending("compaction", GROUP)
    third = table.upsert(GROUP, Rows([row("b", "3")]))
    # A base file of a compaction at work does not count.
    compaction.base(GROUP, [row("a", "2", second), row("c", "1", first)])
    if done:
        compaction.done("COMPACT")
    fourth = table.upsert(GROUP, gone("c"))

    assert values(state(table)) == {"a": "2", "b": "3"}
    assert values(state(table, third)) == {"a": "2", "b": "3", "c": "1"}
    assert values(state(table, second)) == {"a": "2", "c": "1"}
    assert values(rows(table, "complete", first)) == {"a": "2", "b": "3"}
    assert values(rows(table, "complete", second)) == {"b": "3"}
    assert kinds(rows(table, "with_deletes", first)) == {
        "a": ("2", "UPSERT"),
        "b": ("3", "UPSERT"),
        "c": (None, "DELETE"),
    }
    assert kinds(rows(table, "with_deletes", first, second)) == {
        "a": ("2", "UPSERT"),
        "b": (None, "DELETE"),
    }
    assert values(rows(table, "latest_state", second, fourth)) == {"b": "3"}


@VERSIONS
def test_keys_of_a_window_that_were_compacted_and_then_deleted_are_told(
    tmp_path: Path, version: int
) -> None:
    table = made(tmp_path, version)
    first = table.insert(GROUP, [row("a", "1"), row("b", "1"), row("c", "1")])
    second = table.upsert(GROUP, Rows([row("a", "2"), row("b", "2")]), gone("c"))
    table.compact(GROUP, [row("a", "2", second), row("b", "2", second)])
    third = table.upsert(GROUP, gone("a"), Rows([row("b", "3"), row("c", "3")]))
    table.compact(GROUP, [row("b", "3", third), row("c", "3", third)])

    assert kinds(rows(table, "with_deletes", first)) == {
        "a": (None, "DELETE"),
        "b": ("3", "UPSERT"),
        "c": ("3", "UPSERT"),
    }
    assert kinds(rows(table, "with_deletes", second)) == {
        "a": (None, "DELETE"),
        "b": ("3", "UPSERT"),
        "c": ("3", "UPSERT"),
    }


# ── Clustering ──


@VERSIONS
def test_clustering_in_a_window_with_later_changes_is_followed(
    tmp_path: Path, version: int
) -> None:
    table = made(tmp_path, version)
    first = table.insert(GROUP, [row("a", "1"), row("b", "1")])
    table.insert(OTHER, [row("c", "1"), row("d", "1")])
    second = table.upsert(GROUP, Rows([row("a", "2")]))
    standing = [row("a", "2", second), row("b", "1", first), row("c", "1", first)]
    table.cluster([GROUP, OTHER], "0000-3", [*standing, row("d", "1", first)])
    third = table.upsert("0000-3", Rows([row("b", "3")]), gone("c", "a"))
    table.cluster(["0000-3"], "0000-4", [row("b", "3", third), row("d", "1", first)])
    table.upsert("0000-4", Rows([row("d", "4")]))
    start = opened(table, "complete").writes[1].id.partition("_")[0]

    assert values(state(table)) == {"b": "3", "d": "4"}
    assert values(rows(table, "complete", start)) == {"b": "3", "d": "4"}
    assert values(rows(table, "complete", second)) == {"b": "3", "d": "4"}
    assert values(rows(table, "complete", start, second)) == {"a": "2"}
    assert kinds(rows(table, "with_deletes", start)) == {
        "a": (None, "DELETE"),
        "b": ("3", "UPSERT"),
        "c": (None, "DELETE"),
        "d": ("4", "UPSERT"),
    }


def test_pending_clustering_does_not_end_a_window_of_layout_1(tmp_path: Path) -> None:
    table = made(tmp_path, 6)
    first = table.insert(GROUP, [row("a", "1")])
    write = table.begin("replacecommit", clustering_plan())
    write.base("0000-3", [row("a", "1", first)])
    table.insert(OTHER, [row("b", "2")])

    assert values(state(table)) == {"a": "1", "b": "2"}
    assert values(rows(table, "complete", first)) == {"b": "2"}


# ── Overwrites, and keys that move ──


@VERSIONS
@pytest.mark.parametrize("kind", ["MERGE_ON_READ", "COPY_ON_WRITE"])
def test_overwrite_and_dropped_partition_in_a_window(
    tmp_path: Path, version: int, kind: str
) -> None:
    table = made(tmp_path, version, kind=kind)
    start = table.insert(GROUP, [row("a", "1"), row("b", "1")], partition="p")
    table.insert(OTHER, [row("c", "1"), row("d", "1")], partition="q")
    overwrite = table.begin("replacecommit")
    overwrite.base("0000-3", [row("a", "2")], partition="p")
    overwrite.replaced["p"] = [GROUP]
    overwrite.done("INSERT_OVERWRITE")
    drop = table.begin("replacecommit")
    drop.replaced["q"] = [OTHER]
    drop.done("DELETE_PARTITION")
    begin = opened(table, "complete").writes[1].id.partition("_")[0]

    assert values(state(table)) == {"a": "2"}
    assert values(state(table, begin)) == {"a": "1", "b": "1", "c": "1", "d": "1"}
    assert values(rows(table, "complete", begin)) == {"a": "2"}
    changes = rows(table, "with_deletes", begin, columns=("k", "v", TIME))
    newest = {it[0]: it[3] for it in sorted(changes, key=lambda it: (it[2], it[3] == "UPSERT"))}
    assert newest == {"a": "UPSERT", "b": "DELETE", "c": "DELETE", "d": "DELETE"}
    # Nothing is told of what was inserted and dropped within a window but the deletes.
    assert rows(table, "complete", start, begin) != []
    notes = opened(table, "complete")
    units = notes.source.slicing.units(notes.pin, between(notes, begin, None))
    assert "replaced 2 file groups in p, q" in " ".join(units.notes)


@VERSIONS
@pytest.mark.parametrize("together", [True, False], ids=["one write", "two writes"])
def test_key_that_moves_to_another_group_is_a_row_and_not_gone(
    tmp_path: Path, version: int, together: bool
) -> None:
    table = made(tmp_path, version)
    table.insert(OTHER, [row("b", "1")])
    first = table.insert(GROUP, [row("a", "1")])
    write = table.begin()
    write.log(GROUP, gone("a"))
    if not together:
        write.done()
        write = table.begin()
    write.log(OTHER, Rows([row("a", "moved")]))
    write.done()

    assert values(state(table)) == {"a": "moved", "b": "1"}
    assert values(rows(table, "complete", first)) == {"a": "moved"}
    changes = rows(table, "with_deletes", first, columns=("k", "v", TIME))
    newest = sorted(changes, key=lambda it: (it[2], it[3] == "UPSERT"))[-1]
    assert (newest[1], newest[3]) == ("moved", "UPSERT")
    logged = rows(table, "changelog", first, columns=("k", "v"))
    assert [it[2] for it in sorted(logged, key=lambda it: (it[3], it[2] != "DELETE"))] == [
        "DELETE",
        "UPSERT",
    ]


# ── Archive, cleans, metadata ──


@VERSIONS
@pytest.mark.parametrize("mode", MODES)
def test_window_that_begins_in_the_archive_has_the_same_rows(
    tmp_path: Path, version: int, mode: str
) -> None:
    table = made(tmp_path, version)
    times = [table.insert(GROUP, [row("a", "1"), row("b", "1"), row("c", "1")])]
    times.append(table.upsert(GROUP, Rows([row("a", "2")]), gone("b")))
    times.append(table.upsert(GROUP, Rows([row("a", "3")])))
    times.append(table.upsert(GROUP, Rows([row("d", "4")])))
    before = [rows(table, mode, start) for start in times[:3]]

    table.archive(*times[:1])
    table.archive(times[1])

    assert [rows(table, mode, start) for start in times[:3]] == before
    assert values(state(table)) == {"a": "3", "c": "1", "d": "4"}


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("mode", MODES)
def test_write_that_took_long_is_in_its_window_if_it_is_archived_before_earlier_ones(
    tmp_path: Path, version: int, mode: str
) -> None:
    """The archiver goes by requested times: what was done before it may be active still."""
    table = made(tmp_path, version)
    first = table.insert(GROUP, [row("a", "1"), row("b", "1"), row("c", "1")])
    long = table.begin()
    second = table.insert(OTHER, [row("d", "1")])
    long.log(GROUP, Rows([row("a", "2")]), gone("b"))
    long.done()
    table.upsert(OTHER, Rows([row("e", "1")]))
    starts = (first, second, long.requested)
    windows, then = [rows(table, mode, start) for start in starts], state(table, second)

    table.archive(first, long.requested)

    assert [rows(table, mode, start) for start in starts] == windows
    assert state(table, second) == then
    assert values(then) == {"a": "1", "b": "1", "c": "1", "d": "1"}


@pytest.mark.parametrize("version", [8, 9])
def test_state_is_not_read_whose_files_a_clean_may_have_removed_for_an_archived_write(
    tmp_path: Path, version: int
) -> None:
    table = made(tmp_path, version)
    first = table.insert(GROUP, [row("a", "1")])
    long = table.begin()
    second = table.insert(OTHER, [row("b", "1")])
    long.base(GROUP, [row("a", "2", long.requested)])
    long.done()
    third = table.upsert(OTHER, Rows([row("b", "2")]))
    table.archive(first, long.requested)
    table.clean(second)

    assert values(state(table, third)) == {"a": "2", "b": "2"}
    with pytest.raises(HudiFilesCleaned):
        state(table, second)


@VERSIONS
def test_archived_clustering_is_followed(tmp_path: Path, version: int) -> None:
    table = made(tmp_path, version)
    first = table.insert(GROUP, [row("a", "1"), row("b", "1")])
    second = table.upsert(GROUP, Rows([row("a", "2")]))
    table.cluster([GROUP], OTHER, [row("a", "2", second), row("b", "1", first)])
    third = table.upsert(OTHER, Rows([row("b", "3")]))
    table.upsert(OTHER, Rows([row("c", "4")]))
    clustering = table.times[2]
    table.archive(first, second, clustering, third)
    # The files of replaced groups are removed before their clustering is archived.
    for path in table.root.glob(f"*{GROUP}_*"):
        path.unlink()

    assert values(state(table)) == {"a": "2", "b": "3", "c": "4"}
    assert values(rows(table, "complete", first)) == {"a": "2", "b": "3", "c": "4"}


@pytest.mark.parametrize("version", [6, 9])
def test_checkpoint_that_was_archived_without_a_trace_is_refused(
    tmp_path: Path, version: int
) -> None:
    table = made(tmp_path, version)
    first = table.insert(GROUP, [row("a", "1")])
    second = table.upsert(GROUP, Rows([row("a", "2")]))
    table.upsert(GROUP, Rows([row("a", "3")]))
    found = opened(table, "complete")
    checkpoint = found.writes[0]
    table.archive(second)
    table.forget(first)
    now = opened(table, "complete")

    with pytest.raises(HudiHistoryLost, match=first):
        now.source.timeline.instants(now.pin, checkpoint)


@pytest.mark.parametrize(("version", "created"), [(6, 6), (8, 8), (9, 9), (9, 6)])
def test_window_that_ends_at_an_archived_write_has_nothing_of_later_ones(
    tmp_path: Path, version: int, created: int
) -> None:
    said = {"hoodie.table.initial.version": str(created)}
    table = HudiTable(tmp_path / "table", version, ordering="", properties=said)
    first = table.insert(GROUP, [row("a", "1"), row("b", "1")])
    second = table.upsert(GROUP, Rows([row("a", "2")]))
    third = table.upsert(GROUP, Rows([row("a", "3"), row("b", "3")]))
    table.upsert(GROUP, Rows([row("b", "4")]))
    before = opened(table, "complete")
    ends = {it.id.partition("_")[0]: it for it in before.writes}
    window = InstantRange(ends[first], ends[second])
    table.archive(first, second, third)
    found = opened(table, "complete")

    pin, pieces = planned(found, window)
    batches = found.source.reading.reader(pin).batches(pieces, ReadOptions())

    read = [it for batch in batches for it in batch.to_pylist()]
    assert [(it["k"], it["v"]) for it in read] == [("a", "2")]


@VERSIONS
def test_savepoint_before_archived_instants_does_not_hide_their_blocks(
    tmp_path: Path, version: int
) -> None:
    table = made(tmp_path, version)
    first = table.insert(GROUP, [row("a", "1"), row("b", "1")])
    second = table.upsert(GROUP, Rows([row("a", "2")]))
    table.upsert(GROUP, Rows([row("b", "3")]))
    (table.timeline / f"{first}.savepoint.inflight").touch()
    name = f"{first}_{table.tick()}.savepoint" if version >= 8 else f"{first}.savepoint"
    (table.timeline / name).touch()
    table.archive(second)

    assert values(state(table)) == {"a": "2", "b": "3"}
    assert values(rows(table, "complete", first)) == {"a": "2", "b": "3"}
    assert values(rows(table, "complete", second)) == {"b": "3"}


@VERSIONS
def test_restore_before_the_checkpoint_is_refused(tmp_path: Path, version: int) -> None:
    table = made(tmp_path, version)
    table.insert(GROUP, [row("a", "1")])
    second = table.upsert(GROUP, Rows([row("a", "2")]))
    checkpoint = opened(table, "complete").writes[1]
    for path in table.root.glob(f".{GROUP}_*"):
        path.unlink()
    table.forget(second)
    table.begin("restore").done("UNKNOWN")
    found = opened(table, "complete")

    with pytest.raises(HudiInstantGone, match=second):
        found.source.timeline.instants(found.pin, checkpoint)
    assert values(state(table)) == {"a": "1"}


@VERSIONS
def test_metadata_in_json_and_avro_is_read_whatever_the_layout(
    tmp_path: Path, version: int
) -> None:
    table = made(tmp_path, version)
    for number in range(4):
        write = table.begin()
        write.log(GROUP, Rows([row("a", str(number)), row(f"k{number}", "new")]))
        write.done(as_json=number % 2 == 0)
    start = opened(table, "complete").writes[1].id.partition("_")[0]

    assert values(rows(table, "complete", start)) == {"a": "3", "k2": "new", "k3": "new"}


def emptied(table: HudiTable, requested: str) -> None:
    (path,) = table.timeline.glob(f"{requested}*.deltacommit")
    path.write_bytes(b"")


@pytest.mark.parametrize("version", [5, 6])
def test_old_done_file_without_content_is_a_write_of_nothing_with_a_note(
    tmp_path: Path, version: int
) -> None:
    table = made(tmp_path, version)
    first = table.insert(GROUP, [row("a", "1")])
    empty = table.begin().done()
    emptied(table, empty)
    table.upsert(GROUP, Rows([row("a", "2")]))

    assert values(state(table)) == {"a": "2"}
    assert rows(table, "complete", first, empty) == []
    assert values(rows(table, "complete", empty)) == {"a": "2"}
    found = opened(table, "complete")
    for start, noted in ((first, True), (empty, False)):
        units = found.source.slicing.units(found.pin, between(found, start, None))
        assert (f"an empty file for the write of {empty}" in " ".join(units.notes)) is noted


@VERSIONS
def test_newest_done_file_without_content_is_not_finished(tmp_path: Path, version: int) -> None:
    """A reader may see the file before its content; the checkpoint would move over the write."""
    table = made(tmp_path, version)
    table.insert(GROUP, [row("a", "1")])
    empty = table.upsert(GROUP, Rows([row("a", "2")]))
    emptied(table, empty)

    with pytest.raises(HudiInstantUnfinished, match=empty):
        opened(table, "complete")


@pytest.mark.parametrize("version", [8, 9])
def test_done_file_of_layout_2_without_content_is_not_finished(
    tmp_path: Path, version: int
) -> None:
    table = made(tmp_path, version)
    first = table.insert(GROUP, [row("a", "1")])
    empty = table.upsert(GROUP, Rows([row("a", "2")]))
    emptied(table, empty)
    table.upsert(GROUP, Rows([row("a", "3")]))

    with pytest.raises(HudiInstantUnfinished, match=empty):
        rows(table, "complete", first)


@pytest.mark.parametrize("content", [b"{", b"Obj\x01torn", b"[]"])
def test_done_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes) -> None:
    table = made(tmp_path)
    first = table.insert(GROUP, [row("a", "1")])
    for path in table.timeline.glob(f"{first}_*.deltacommit"):
        path.write_bytes(content)

    with pytest.raises(TimelineFileDamaged, match=first):
        opened(table, "complete")


@VERSIONS
def test_earlier_state_that_was_cleaned_is_refused_and_the_head_is_read(
    tmp_path: Path, version: int
) -> None:
    table = made(tmp_path, version)
    first = table.insert(GROUP, [row("a", "1"), row("b", "1")])
    second = table.upsert(GROUP, Rows([row("a", "2")]))
    compaction = table.compact(GROUP, [row("a", "2", second), row("b", "1", first)])
    third = table.upsert(GROUP, gone("b"))
    table.clean(compaction)
    for path in table.root.glob(f"*{GROUP}_*"):
        if compaction not in path.name and third not in path.name:
            path.unlink()

    assert values(state(table)) == {"a": "2"}
    assert values(rows(table, "complete", first)) == {"a": "2"}
    # The compaction is part of the state after the write before it, and is still there.
    assert values(rows(table, "complete", first, second)) == {"a": "2"}
    assert kinds(rows(table, "with_deletes", first, second)) == {"a": ("2", "UPSERT")}
    for mode in ("latest_state", "skip_merge"):
        with pytest.raises(HudiFilesCleaned):
            rows(table, mode, first, second)
    with pytest.raises((HudiChangesLost, HudiFilesCleaned)):
        rows(table, "changelog", first)


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("mode", MODES)
def test_long_write_that_was_done_after_the_retained_one_is_read(
    tmp_path: Path, version: int, mode: str
) -> None:
    table = made(tmp_path, version)
    table.insert(GROUP, [row("a", "1")])
    long = table.begin()
    long.log(GROUP, Rows([row("a", "2")]))
    second = table.upsert(OTHER, Rows([row("b", "2")]))
    long.done()
    table.upsert(OTHER, Rows([row("b", "3")]))
    table.clean(second)

    assert [it[2] for it in rows(table, mode, second, long.requested)] == ["2"]


def test_clean_at_work_is_believed(tmp_path: Path) -> None:
    table = made(tmp_path)
    first = table.insert(GROUP, [row("a", "1")])
    second = table.upsert(GROUP, Rows([row("a", "2")]))
    third = table.upsert(GROUP, Rows([row("a", "3")]))
    table.begin("clean", clean_plan(third))

    with pytest.raises(HudiFilesCleaned, match=f"keeps files since {third} only"):
        rows(table, "complete", first, second)
    assert values(rows(table, "complete", first, third)) == {"a": "3"}


def test_windows_one_after_the_other_lead_to_the_state(tmp_path: Path) -> None:
    """Writes that are done out of order are in one window each, however windows are cut."""
    table = made(tmp_path, 8)
    table.insert(GROUP, [row("a", "1"), row("b", "1")])
    early, late = table.begin(), table.begin()
    early.log(GROUP, Rows([row("a", "early")]))
    late.log(GROUP, Rows([row("a", "late"), row("b", "late")]))
    late.done()
    early.done()
    found = opened(table, "complete", columns=("k", "v"))
    ends = [it.id.partition("_")[0] for it in found.writes]

    assert ends[1:] == [late.requested, early.requested]
    windows = [rows(table, "complete", one, two) for one, two in pairwise(ends)]
    assert [values(it) for it in windows] == [{"a": "late", "b": "late"}, {}]
    assert values(state(table)) == {"a": "late", "b": "late"}
    pin = found.source.timeline.pin(NOW)
    _, pieces = planned(found, between(found, ends[0], None))
    assert pin.head == found.pin.head
    assert len(pieces) == 1
    assert KIND not in found.source.reading.schema(pin).names


@pytest.mark.parametrize("mode", ["complete", "latest_state", "skip_merge"])
def test_window_whose_files_are_gone_without_a_clean_on_the_timeline_is_refused(
    tmp_path: Path, mode: str
) -> None:
    table = made(tmp_path)
    first = table.insert(GROUP, [row("a", "1"), row("b", "1")])
    second = table.upsert(GROUP, Rows([row("a", "2")]))
    compaction = table.compact(GROUP, [row("a", "2", second), row("b", "1", first)])
    third = table.upsert(GROUP, Rows([row("b", "3")]))
    for path in table.folder("").iterdir():
        # The clean that removed them was archived since.
        if GROUP in path.name and compaction not in path.name and third not in path.name:
            path.unlink()

    if mode == "complete":
        assert values(rows(table, mode, first, second)) == {"a": "2"}
    else:
        with pytest.raises(HudiFilesCleaned, match=f"because the files of {GROUP} are not there"):
            rows(table, mode, first, second)


@pytest.mark.parametrize("mode", ["complete", "with_deletes", "latest_state"])
def test_write_while_buckets_are_split_is_returned_once(tmp_path: Path, mode: str) -> None:
    """Such a write is written into the group that the pending clustering will make, as well."""
    table = made(tmp_path)
    first = table.insert(GROUP, [row("a", "1"), row("b", "1")])
    split = table.begin("clustering")
    write = table.begin()
    write.log(GROUP, Rows([row("a", "2")]))
    write.log(OTHER, Rows([row("a", "2")]), append=table.root / f".{OTHER}_{split.requested}.log.1")
    write.done()

    assert [it[:3] for it in rows(table, mode, first)] == [("a", 1, "2")]


@pytest.mark.parametrize("mode", ["complete", "with_deletes", "latest_state", "skip_merge"])
def test_write_while_buckets_were_split_is_read_as_of_before_the_split_was_done(
    tmp_path: Path, mode: str
) -> None:
    table = made(tmp_path)
    first = table.insert(GROUP, [row("a", "1"), row("b", "1")])
    split = table.begin("clustering")
    write = table.begin()
    write.log(GROUP, Rows([row("a", "2")]))
    write.log(OTHER, Rows([row("a", "2")]), append=table.root / f".{OTHER}_{split.requested}.log.1")
    second = write.done()
    split.base(OTHER, [row("a", "1", first), row("b", "1", first)])
    split.replaced[""] = [GROUP]
    split.done("CLUSTER")
    third = table.upsert(OTHER, Rows([row("b", "3")]))

    assert [it[:3] for it in rows(table, mode, first, second)] == [("a", 1, "2")]
    assert values(rows(table, mode, second, third)) == {"b": "3"}


@VERSIONS
@pytest.mark.parametrize("mode", ["latest_state", "skip_merge"])
def test_window_without_a_clean_on_the_timeline_is_read_from_what_is_left_if_asked(
    tmp_path: Path, mode: str, version: int
) -> None:
    table = made(tmp_path, version)
    first = table.insert(GROUP, [row("a", "1"), row("b", "1")])
    second = table.upsert(GROUP, Rows([row("a", "2")]))
    table.upsert(GROUP, Rows([row("b", "3")]))
    old = [path for path in table.root.iterdir() if GROUP in path.name]
    table.compact(GROUP, [row("a", "2", second), row("b", "3", table.times[-1])])
    table.upsert(GROUP, Rows([row("b", "4")]))
    for path in old:
        path.unlink()
    found = opened(table, mode, on_cleaned="snapshot")
    window = between(found, first, second)

    units = found.source.slicing.units(found.pin, window)
    read = found.source.reading.reader(found.pin).batches(units, ReadOptions())

    assert [it["v"] for batch in read for it in batch.to_pylist()] == ["2"]
    (note,) = (it for it in units.notes if "on_cleaned" in it)
    assert note.startswith(f"files of the state after {second} are not there any more, so that")


@VERSIONS
@pytest.mark.parametrize("layout_id", [False, True], ids=["requested time", "id"])
def test_start_after_an_archived_write_is_found(
    tmp_path: Path, version: int, layout_id: bool
) -> None:
    table = made(tmp_path, version)
    first = table.insert(GROUP, [row("a", "1")])
    second = table.upsert(GROUP, Rows([row("a", "2")]))
    table.upsert(GROUP, Rows([row("a", "3")]))
    known = opened(table, "complete").writes
    table.archive(first, second)
    text = known[1].id if layout_id else second

    def start(kind: str) -> Any:
        found = opened(table, "complete", start={kind: text})
        return found.source.timeline.first_checkpoint(found.pin)

    assert start("after") == known[1]
    assert start("from") == known[0]


@VERSIONS
@pytest.mark.parametrize("text", ["20251231000000000", "20251231000000000_1", "tomorrow"])
def test_start_after_a_write_that_is_nowhere_is_refused(
    tmp_path: Path, version: int, text: str
) -> None:
    table = made(tmp_path, version)
    first = table.insert(GROUP, [row("a", "1")])
    table.upsert(GROUP, Rows([row("a", "2")]))
    table.archive(first)
    found = opened(table, "complete", start={"after": text})

    with pytest.raises(InstantNotFound, match=text):
        found.source.timeline.first_checkpoint(found.pin)


def test_looking_at_a_checkpoint_does_not_change_the_notes_of_a_window(tmp_path: Path) -> None:
    table = made(tmp_path)
    first = table.insert(GROUP, [row("a", "1")])
    second = table.upsert(GROUP, Rows([row("a", "2")]))
    third = table.upsert(GROUP, Rows([row("a", "3")]))
    table.upsert(GROUP, Rows([row("a", "4")]))
    lost, _, kept, _ = opened(table, "complete").writes
    table.archive(second)
    table.forget(first)
    found = opened(table, "complete", on_cleaned="snapshot")
    timeline, pin = found.source.timeline, found.pin

    assert not timeline.following(pin, lost).joins_on
    assert timeline.checkpoint_state(pin, kept).state == "in lineage"

    assert pin.head is not None
    units = found.source.slicing.units(pin, InstantRange(None, pin.head), whole=True)
    assert any(f"the commits after {first} are not known" in note for note in units.notes)
    assert order_of(kept)[1] == third
