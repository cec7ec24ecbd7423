"""Windows, slices and merges that other readers of Hudi get wrong, on tables of their structure.

The cases HUDI-CA to HUDI-CL are those that hudi-rs 0.5.0 answers otherwise than a pipeline needs.
HUDI-CI is `test_window_of_a_table_without_commit_times_is_refused` in test_hudi_golden.py.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from hudi_windows import between, opened, planned, rows, state
from hudi_writer import KEY, TIME, Deletes, HudiTable, Rows, gone
from tidegate.errors import (
    HudiFilesCleaned,
    HudiPartialRecords,
    InstantNotFound,
    SourceFileGone,
)
from tidegate.read.merge import ReadOptions

if TYPE_CHECKING:
    from pathlib import Path

    from hudi_writer import Write

GROUP = "0000-1"


def row(key: str, value: str, ts: int) -> dict[str, object]:
    return {"k": key, "ts": ts, "v": value}


START = [row("a", "10", 1000), row("b", "20", 1000), row("c", "30", 1000), row("d", "40", 1000)]


def values(found: list[tuple[object, ...]]) -> dict[object, object]:
    """Key → value, of rows with one row per key."""
    made = {it[0]: it[2] for it in found}
    assert len(made) == len(found)
    return made


def written_out_of_order(root: Path) -> tuple[HudiTable, list[str], Write]:
    table = HudiTable(root / "table", version=8)
    first = table.insert(GROUP, START)
    second = table.upsert(GROUP, Rows([row("a", "11", 1500)]))
    late = table.begin()
    late.log(GROUP, Rows([row("a", "111", 2500)]))
    fourth = table.upsert(GROUP, Rows([row("c", "33", 2000)]))
    return table, [first, second, late.requested, fourth], late


def test_case_ca_write_that_is_done_late_is_in_the_window_of_its_completion(tmp_path: Path) -> None:
    table, (first, _, third, fourth), late = written_out_of_order(tmp_path)
    window = ("complete", first, fourth)
    before = rows(table, *window)

    late.done()

    assert values(before) == {"a": "11", "c": "33"}
    assert rows(table, *window) == before
    assert values(rows(table, "latest_state", first, fourth)) == {"a": "11", "c": "33"}
    assert values(rows(table, "complete", fourth, third)) == {"a": "111"}
    assert values(state(table)) == {"a": "111", "b": "20", "c": "33", "d": "40"}


def test_case_cb_logs_of_a_pending_compaction_lie_over_the_slice_before_it(tmp_path: Path) -> None:
    table = HudiTable(tmp_path / "table", version=6)
    first = table.insert(GROUP, START)
    uncommitted = table.begin()
    uncommitted.log(GROUP, Rows([row("b", "99", 3000)]))
    table.pending("compaction", GROUP)
    second = table.begin()
    second.log(GROUP, Rows([row("a", "22", 2000)]))
    second.done()
    table.forget(uncommitted.requested)

    assert values(state(table)) == {"a": "22", "b": "20", "c": "30", "d": "40"}
    assert values(rows(table, "complete", first)) == {"a": "22"}
    assert values(rows(table, "latest_state", first)) == {"a": "22"}


def compacted(root: Path) -> tuple[HudiTable, list[str]]:
    """A table whose third write was compacted, and whose older files are still there."""
    table = HudiTable(root / "table")
    first = table.insert(GROUP, START)
    second = table.upsert(GROUP, Rows([row("a", "11", 2000)]))
    third = table.upsert(GROUP, Rows([row("b", "22", 2000)]))
    standing = [
        {**START[0], "v": "11", "ts": 2000, TIME: second},
        {**START[1], "v": "22", "ts": 2000, TIME: third},
        *({**it, TIME: first} for it in START[2:]),
    ]
    compaction = table.compact(GROUP, standing)
    fourth = table.upsert(GROUP, Rows([row("c", "33", 3000), row("d", "44", 3000)]))
    return table, [first, second, third, compaction, fourth]


def remove_old_files(table: HudiTable, times: list[str]) -> None:
    for path in table.root.glob("*0000-1_*"):
        if any(time in path.name for time in times[:3]):
            path.unlink()


@pytest.mark.parametrize("mode", ["latest_state", "complete", "with_deletes", "skip_merge"])
def test_case_cc_window_of_a_cleaned_slice_is_read_of_the_compaction_or_refused(
    tmp_path: Path, mode: str
) -> None:
    table, times = compacted(tmp_path)
    remove_old_files(table, times)
    table.clean(times[3])

    with pytest.raises(HudiFilesCleaned, match=times[3]):
        rows(table, mode, times[0], times[1])
    assert values(rows(table, "complete", times[0])) == {"a": "11", "b": "22", "c": "33", "d": "44"}


def test_case_cd_table_without_its_old_instants_is_whole_from_the_earliest(tmp_path: Path) -> None:
    table, times = compacted(tmp_path)
    table.forget(*times[:2])
    expected = {"a": "11", "b": "22", "c": "33", "d": "44"}

    assert values(state(table)) == expected
    for start in ("full", "earliest"):
        found = opened(table, "complete", start=start)
        assert found.source.timeline.first_checkpoint(found.pin) is None
    assert values(rows(table, "complete")) == expected
    named = opened(table, "complete", start={"after": times[0]})
    with pytest.raises(InstantNotFound, match=times[0]):
        named.source.timeline.first_checkpoint(named.pin)


def test_case_cd_archived_instants_are_read_of_the_history(tmp_path: Path) -> None:
    table, times = compacted(tmp_path)
    table.archive(*times[:2])

    assert values(rows(table, "complete", times[0])) == {"a": "11", "b": "22", "c": "33", "d": "44"}
    assert values(rows(table, "complete", times[1])) == {"b": "22", "c": "33", "d": "44"}


def partial(root: Path) -> tuple[HudiTable, list[str]]:
    table = HudiTable(root / "table", columns=WIDE)
    first = table.insert(
        GROUP,
        [{"k": "k1", "ts": 100, "v": "v1", "n": 1}, {"k": "k2", "ts": 100, "v": "v2", "n": 2}],
    )
    only = {name: WIDE[name] for name in ("k", "ts", "v")}
    update = Rows([row("k1", "v1_partial", 100), row("k2", "v2_partial", 100)], only, partial=True)
    return table, [first, table.upsert(GROUP, update)]


WIDE = {
    "k": ("string", pa.string()),
    "ts": ("long", pa.int64()),
    "v": ("string", pa.string()),
    "n": ("long", pa.int64()),
}


def test_case_ce_partial_update_has_the_columns_of_the_row_before(tmp_path: Path) -> None:
    table, (first, second) = partial(tmp_path)

    assert rows(table, "complete", first, second) == [
        ("k1", 100, "v1_partial", 1),
        ("k2", 100, "v2_partial", 2),
    ]
    with pytest.raises(HudiPartialRecords):
        rows(table, "latest_state", first, second)


@pytest.mark.parametrize("is_first", [True, False], ids=["first window", "later window"])
def test_partial_update_is_not_returned_without_the_row_before(
    tmp_path: Path, is_first: bool
) -> None:
    table, (first, second) = partial(tmp_path)

    with pytest.raises(HudiPartialRecords, match=second):
        rows(table, "skip_merge", None if is_first else first, second)
    if is_first:
        assert len(rows(table, "latest_state", None, second)) == len(rows(table))


def test_case_cf_late_record_is_no_change(tmp_path: Path) -> None:
    table = HudiTable(tmp_path / "table")
    first = table.insert(GROUP, START)
    late = table.upsert(GROUP, Rows([row("a", "stale", 50)]))
    deletes = table.upsert(GROUP, Deletes([("c", ("Long", 50)), ("d", ("Long", 3000))]))

    assert rows(table, "complete", first, late) == []
    assert rows(table, "with_deletes", first, late) == []
    assert rows(table, "latest_state", first, late) == [("a", 50, "stale")]
    assert rows(table, "with_deletes", late, deletes) == [("d", None, None, "DELETE")]
    assert values(state(table)) == {"a": "10", "b": "20", "c": "30"}


def test_case_cg_blocks_that_are_not_done_are_not_merged_and_all_columns_are_there(
    tmp_path: Path,
) -> None:
    table = HudiTable(tmp_path / "old", version=6)
    table.insert(GROUP, START)
    write = table.begin()
    path = write.log(GROUP, Rows([row("b", "99", 3000)]))
    table.forget(write.requested)
    later = table.begin()
    later.log(GROUP, Rows([row("a", "11", 3000)]), append=path)
    later.done()

    assert values(state(table)) == {"a": "11", "b": "20", "c": "30", "d": "40"}


def test_case_cg_column_of_a_log_that_the_base_file_lacks_is_there(tmp_path: Path) -> None:
    table = HudiTable(tmp_path / "table", columns=WIDE)
    only = {name: WIDE[name] for name in ("k", "ts", "v")}
    first = table.insert(GROUP, START[:2], columns=only)
    table.upsert(GROUP, Rows([{**row("a", "11", 2000), "n": 7}]))

    assert state(table) == [("a", 2000, "11", 7), ("b", 1000, "20", None)]
    assert rows(table, "complete", first) == [("a", 2000, "11", 7)]


def test_case_cg_base_file_of_narrower_types_is_widened(tmp_path: Path) -> None:
    narrow = {"k": ("string", pa.string()), "n": ("int", pa.int32()), "f": ("float", pa.float32())}
    wide = {"k": ("string", pa.string()), "n": ("long", pa.int64()), "f": ("double", pa.float64())}
    table = HudiTable(tmp_path / "table", columns=wide, ordering="")
    first = table.insert(
        GROUP, [{"k": "k1", "n": 1, "f": 0.5}, {"k": "k2", "n": 2, "f": 0.5}], columns=narrow
    )
    table.upsert(GROUP, Rows([{"k": "k2", "n": 5_000_000_000, "f": 2.25}]))

    assert state(table) == [("k1", 1, 0.5), ("k2", 5_000_000_000, 2.25)]
    assert rows(table, "complete", first) == [("k2", 5_000_000_000, 2.25)]


def test_float_that_became_a_double_keeps_its_digits_in_base_files_and_logs(
    tmp_path: Path,
) -> None:
    """As Hudi reads and rewrites it; also where it orders the records (HUDI-M17)."""
    narrow = {"k": ("string", pa.string()), "f": ("float", pa.float32())}
    wide = {"k": ("string", pa.string()), "f": ("double", pa.float64())}
    table = HudiTable(tmp_path / "table", columns=wide, ordering="f")
    first = table.insert(
        GROUP, [{"k": key, "f": 0.3} for key in ("k1", "k2", "k3", "k4")], columns=narrow
    )
    table.upsert(GROUP, Rows([{"k": "k1", "f": 0.7}], columns=narrow))
    table.upsert(GROUP, Rows([{"k": "k2", "f": 0.3}, {"k": "k3", "f": 0.2}]))
    table.upsert(GROUP, Deletes([("k4", ("Double", 0.3))]))

    assert state(table) == [("k1", 0.7), ("k2", 0.3), ("k3", 0.3)]
    changed = rows(table, "with_deletes", first)
    assert {(it[0], it[1]) for it in changed if it[-1] != "DELETE"} == {("k1", 0.7), ("k2", 0.3)}
    assert [it[0] for it in changed if it[-1] == "DELETE"] == ["k4"]


@pytest.mark.parametrize(
    ("values", "winner"),
    [([0.0, -0.0], 0), ([-0.0, 0.0], 1), ([0.0, 0.0], 1), ([math.nan, 1e300], 0)],
    ids=str,
)
@pytest.mark.parametrize("kind", ["base and log", "two logs", "delete"])
def test_floats_order_records_as_in_java(
    tmp_path: Path, values: list[float], winner: int, kind: str
) -> None:
    """HUDI-M9."""
    columns = {
        "k": ("string", pa.string()),
        "f": ("double", pa.float64()),
        "v": ("long", pa.int64()),
    }
    table = HudiTable(tmp_path / "table", columns=columns, ordering="f")
    one, other = ({"k": "k1", "f": value, "v": at} for at, value in enumerate(values))
    if kind == "two logs":
        table.upsert(GROUP, Rows([one]))
    else:
        table.insert(GROUP, [one])
    table.upsert(
        GROUP, Deletes([("k1", ("Double", values[1]))]) if kind == "delete" else Rows([other])
    )

    found = [it[-1] for it in state(table)]

    assert found == ([] if kind == "delete" and winner else [winner])


SERVICES = pytest.mark.parametrize(
    "services", [[], ["compact"], ["cluster"], ["compact", "cluster"], ["cluster", "cluster"]]
)
OF_FEED = ["k", "ts", "v", KEY, TIME]


def serve(table: HudiTable, services: list[str], standing: list[dict[str, object]]) -> None:
    """Rewrite all rows, each with the time of its own write, one service after the other."""
    group = GROUP
    for number, service in enumerate(services):
        if service == "compact":
            table.compact(group, standing)
        else:
            clustered = f"0000-{number + 2}"
            table.cluster([group], clustered, standing)
            group = clustered


@pytest.mark.parametrize("version", [6, 8, 9])
@SERVICES
def test_row_that_a_late_record_brings_back_is_the_latest_of_its_key_in_a_feed(
    tmp_path: Path, version: int, services: list[str]
) -> None:
    """HUDI-R6: in Hudi it has the time from before its delete (HUDI-M10)."""
    table = HudiTable(tmp_path / "table", version=version)
    first = table.insert(GROUP, START)
    deleted = table.upsert(GROUP, gone("a", "b"))
    before = opened(table, "with_deletes", OF_FEED)
    feed = list(before.rows(between(before, first, deleted)))
    late = table.upsert(GROUP, Rows([row("a", "stale", 50)]))
    standing = [START[0], *START[2:]]
    serve(table, services, [{**it, TIME: first} for it in standing])
    after = opened(table, "with_deletes", OF_FEED)

    feed += after.rows(between(after, deleted, late))

    assert values(state(table))["a"] == "10"
    assert sorted((it[TIME], it[KEY], it["v"]) for it in feed) == [
        (deleted, "a", None),
        (deleted, "b", None),
        (late, "a", "10"),
    ]
    current = rows(table, "complete", deleted, columns=("k", "v", TIME))
    assert current == [("a", "10", first)]


@SERVICES
@pytest.mark.parametrize("is_late", [False, True])
def test_row_that_a_late_record_completes_is_the_latest_of_its_key_in_a_feed(
    tmp_path: Path, services: list[str], is_late: bool
) -> None:
    said = {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}
    table = HudiTable(tmp_path / "table", properties=said)
    first = table.insert(GROUP, [{"k": "a", "ts": 1000, "v": None}, *START[1:]])
    second = table.upsert(GROUP, Rows([row("b", "21", 2000)]))
    third = table.upsert(GROUP, Rows([row("a", "sent", 50 if is_late else 1500)]))
    completed = {**row("a", "sent", 1000 if is_late else 1500), TIME: first if is_late else third}
    updated = {**row("b", "21", 2000), TIME: second}
    serve(table, services, [completed, updated, *({**it, TIME: first} for it in START[2:])])
    mode = opened(table, "with_deletes", OF_FEED)

    feed = [(it[TIME], it[KEY], it["v"]) for it in mode.rows(between(mode, second, third))]

    assert values(state(table)) == {"a": "sent", "b": "21", "c": "30", "d": "40"}
    assert feed == [(third, "a", "sent")]
    assert values(rows(table, "complete", second)) == {"a": "sent"}


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("archived", [False, True], ids=["active", "archived"])
def test_changes_of_writers_that_do_not_wait_for_each_other_are_in_the_order_of_completion(
    tmp_path: Path, version: int, archived: bool
) -> None:
    """HUDI-R6: of a key's changes that with the latest commit time counts, whatever the windows."""
    table = HudiTable(tmp_path / "table", version=version)
    first = table.insert(GROUP, START)
    one = table.begin()
    two = table.begin()
    three = table.begin()
    two.log(GROUP, Rows([row("a", "two", 2000), row("b", "two", 2000)]))
    two.done()
    one.log(GROUP, Rows([row("a", "one", 3000), row("b", "one", 3000)]))
    one.done()
    three.log(GROUP, Rows([row("c", "three", 2000)]), gone("a"))
    three.done()
    last = table.upsert(GROUP, Rows([row("c", "last", 4000)]))
    feed = []
    for start, end in pairwise([first, two.requested, one.requested, three.requested, last]):
        found = opened(table, "with_deletes", OF_FEED)
        feed += found.rows(between(found, start, end))
        if archived and end == one.requested:
            table.archive(first, one.requested)

    told = {}
    for it in sorted(feed, key=lambda it: (it[TIME], it["_change_type"] == "UPSERT")):
        told[it[KEY]] = it["v"] if it["_change_type"] == "UPSERT" else None
    standing = values(state(table))
    assert told == {"a": None, "b": "one", "c": "last"}
    assert told == {key: standing.get(key) for key in told}
    assert {it[TIME] for it in feed if it["v"] in {"two", "last"}} == {two.requested, last}
    written = rows(table, "changelog", first, columns=("k", "v", TIME))
    assert {it[2] for it in written} == {write.requested for write in (one, two, three)} | {last}


@pytest.mark.parametrize("mode", ["complete", "with_deletes"])
@pytest.mark.parametrize("ordering", ["ts", ""], ids=["by event time", "by commit time"])
def test_logs_that_were_removed_before_their_window_was_read_are_told(
    tmp_path: Path, mode: str, ordering: str
) -> None:
    """Rows that a record changed although it lost are not found without it (HUDI-R5)."""
    table = HudiTable(tmp_path / "table", ordering=ordering)
    first = table.insert(GROUP, START)
    second = table.upsert(GROUP, Rows([row("a", "11", 2000)]))
    table.compact(
        GROUP, [{**row("a", "11", 2000), TIME: second}, *({**it, TIME: first} for it in START[1:])]
    )
    found = opened(table, mode)
    window = between(found, first, second)
    before = found.source.slicing.units(found.pin, window)
    (log,) = table.root.rglob(".*.log.*")
    log.unlink()

    after = found.source.slicing.units(found.pin, window)

    assert before.notes == ()
    assert [log.name in note for note in after.notes] == [True] * bool(ordering)
    assert values(rows(table, mode, first)) == {"a": "11"}


@pytest.mark.parametrize("version", [6, 8, 9])
def test_case_ch_groups_that_have_only_logs_are_read(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "table", version=version)
    buckets = [f"0000000{number}-1b4e-4f4e-8d3b-0-0" for number in range(3)]
    first = table.upsert(buckets[0], Rows(START[:1]))
    write = table.begin()
    write.log(buckets[1], Rows(START[1:2]))
    write.log(buckets[2], Rows(START[2:]))
    write.done()
    last = table.upsert(buckets[2], Rows([row("c", "33", 2000)]), gone("d"))

    assert values(state(table)) == {"a": "10", "b": "20", "c": "33"}
    assert values(rows(table, "complete", first)) == {"b": "20", "c": "33"}
    assert [it[0] for it in rows(table, "with_deletes", write.requested) if it[3] == "DELETE"] == [
        "d"
    ]
    assert values(rows(table, "latest_state", write.requested, last)) == {"c": "33"}


def test_case_cj_overwrite_that_is_done_after_the_end_of_a_window_is_not_in_its_state(
    tmp_path: Path,
) -> None:
    table = HudiTable(tmp_path / "table")
    table.insert(GROUP, START)
    overwrite = table.begin("replacecommit")
    overwrite.base("0000-2", [row("a", "new", 1)])
    overwrite.replaced[""] = [GROUP]
    second = table.upsert(GROUP, Rows([row("a", "11", 2000)]))
    assert values(state(table))["a"] == "11"

    overwrite.done("INSERT_OVERWRITE")

    assert values(state(table, second)) == {"a": "11", "b": "20", "c": "30", "d": "40"}
    assert values(state(table)) == {"a": "new"}


def test_case_ck_log_that_vanishes_after_planning_is_named(tmp_path: Path) -> None:
    table, times = compacted(tmp_path)
    found = opened(table, "complete")
    pin, pieces = planned(found, between(found, times[3 - 1], None))
    (log,) = table.root.glob(f".*_{times[4]}.log.*")
    log.unlink()

    with pytest.raises(SourceFileGone, match=f"{times[4]}"):
        list(found.source.reading.reader(pin).batches(pieces, ReadOptions()))


def test_case_cl_window_of_a_log_compaction_has_only_what_its_writes_changed(
    tmp_path: Path,
) -> None:
    table = HudiTable(tmp_path / "table", ordering="")
    first = table.upsert(GROUP, Rows([row("k1", "1", 1), row("k2", "2", 1)]))
    second = table.upsert(GROUP, Rows([row("k1", "11", 1)]))
    third = table.upsert(GROUP, Rows([row("k3", "3", 1)]))
    service = table.begin("logcompaction")
    whole = [row("k1", "11", 1), row("k2", "2", 1), row("k3", "3", 1)]
    service.log(GROUP, Rows(whole, compacted=[first, second, third]))
    compaction = service.done("LOG_COMPACT")

    assert values(rows(table, "complete", second)) == {"k3": "3"}
    assert values(rows(table, "latest_state", second)) == {"k3": "3"}
    assert values(state(table)) == {"k1": "11", "k2": "2", "k3": "3"}
    found = opened(table, "complete")
    assert compaction not in {it.id.partition("_")[0] for it in found.writes}
    assert found.source.timeline.instants(found.pin, found.writes[-1]) == ()


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("kind", ["MERGE_ON_READ", "COPY_ON_WRITE"])
@pytest.mark.parametrize("mode", ["complete", "latest_state"])
def test_window_that_ends_in_the_archive_has_the_rows_it_had_before(
    tmp_path: Path, version: int, kind: str, mode: str
) -> None:
    table = HudiTable(tmp_path / "table", version, kind, ordering="")
    first = table.insert("g-0", [row("a", "1", 1), row("b", "1", 1)])
    if kind == "MERGE_ON_READ":
        write = table.begin()
        log = write.log("g-0", Rows([row("a", "2", 1)]))
        second = write.done()
        write = table.begin()
        write.log("g-0", Rows([row("a", "3", 1)]), **({"append": log} if version == 6 else {}))
        third = write.done()
    else:
        standing = {**row("b", "1", 1), "_hoodie_commit_time": first}
        write = table.begin()
        write.base("g-0", [row("a", "2", 1), standing], previous=first)
        second = write.done()
        write = table.begin()
        write.base("g-0", [row("a", "3", 1), standing], previous=second)
        third = write.done()
    table.insert("g-1", [row("z", "1", 1)])
    before = rows(table, mode, first, second)

    table.archive(first, second, third)

    assert rows(table, mode, first, second) == before


@pytest.mark.parametrize("version", [6, 9])
def test_write_that_only_its_log_compaction_has_is_in_its_window(
    tmp_path: Path, version: int
) -> None:
    table = HudiTable(tmp_path / "table", version, ordering="")
    first = table.insert("g-0", [row("a", "1", 1), row("b", "1", 1)])
    write = table.begin()
    log = write.log("g-0", Rows([row("a", "2", 1)]))
    second = write.done()
    service = table.begin("logcompaction")
    service.log("g-0", Rows([row("a", "2", 1)], compacted=(second,)))
    service.done("LOG_COMPACT")
    log.unlink()

    assert rows(table, "complete", first) == [("a", 1, "2")]
