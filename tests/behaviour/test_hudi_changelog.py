"""A changelog of a Hudi table has what each write wrote and deleted (HUDI-R7)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from golden_hudi import RANDOM, Golden, texts
from hudi_logs import rows_block
from hudi_opinions import (
    OTHER_STATES,
    WITH_META,
    alike,
    is_exempt,
    random_states,
    states,
    without,
)
from small_hudi import HudiLake
from tidegate.errors import HudiChangesLost, HudiCommitTimesMissing, HudiFilesCleaned
from tidegate.model.instant import InstantRange

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from tidegate.model.instant import Instant

    State = tuple[Instant, list[dict[str, Any]]]

KEY, FOLDER, TIME = "_hoodie_record_key", "_hoodie_partition_path", "_hoodie_commit_time"
KIND, ORDINAL, PARTIAL = "_change_type", "_change_ordinal", "_partial"
OF_CHANGES = (KIND, ORDINAL, PARTIAL)
COMPLETED_BY_THE_MERGE = "overwrite_non_defaults"
"""Records of that payload lack values that the merge takes from the row before."""


def opened(case: str, place: Path | None = None, **keys: Any) -> Golden:
    known = Golden(case, "snapshot")
    names = known.source.reading.schema(known.pin).names
    columns = [*names, *OF_CHANGES, KEY, FOLDER, TIME]
    return Golden(case, "changelog", place, read={"columns": columns}, **keys)


def orders_by_time(case: str) -> bool:
    """Whether of the records of a key the latest wins, so that a changelog can be followed."""
    return not Golden(case, "snapshot").pin.details["keyed_by"]["ordering"]


def followed(
    before: Iterable[Mapping[str, Any]], changes: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Apply changes to a state, write by write; what a write deletes and inserts, it inserts."""
    standing = {(row[FOLDER], row[KEY]): dict(row) for row in before}
    for row in sorted(changes, key=lambda row: (row[ORDINAL], row[KIND] != "DELETE")):
        standing.pop((row[FOLDER], row[KEY]), None)
        if row[KIND] not in {"DELETE", "UPDATE_BEFORE"}:
            kept = {name: value for name, value in row.items() if name not in OF_CHANGES}
            standing[row[FOLDER], row[KEY]] = kept
    return list(standing.values())


def check(case: str, found: list[State]) -> int:
    table, compared = opened(case), 0
    spans = [(number, end) for number in range(len(found)) for end in (number + 1, len(found) - 1)]
    for one, other in spans:
        if other <= one or other >= len(found):
            continue
        (start, before), (end, after) = found[one], found[other]
        try:
            changes = table.rows(InstantRange(start, end))
        except (HudiChangesLost, HudiFilesCleaned):
            continue
        if any(row[PARTIAL] for row in changes):
            continue
        assert texts([alike(row) for row in followed(before, changes)]) == texts(
            [alike(row) for row in after]
        ), (start.id, end.id)
        compared += 1
    return compared


FOLLOWED = [
    case
    for case in without(
        *OTHER_STATES, [COMPLETED_BY_THE_MERGE, "_inflight_base_left"], of=WITH_META
    )
    if orders_by_time(case)
]


@pytest.mark.parametrize("case", FOLLOWED)
def test_state_with_the_changes_of_writes_is_the_engines_next_state(case: str) -> None:
    found = list(states(case, Golden(case, "snapshot")))

    assert check(case, found) or len(found) < 2 or is_exempt(case, ["cleaned", "archived"])


@pytest.mark.parametrize("case", [case for case in RANDOM if orders_by_time(case)])
def test_state_of_a_random_table_with_changes_is_the_engines_next_state(case: str) -> None:
    assert check(case, list(random_states(case, Golden(case, "snapshot"))))


def test_records_that_lose_by_their_ordering_value_are_changes_all_the_same() -> None:
    changed = opened("v9_mor_event_time")
    first, *_, last = changed.writes

    rows = changed.rows(InstantRange(first, last))

    standing = {row["v"] for row in Golden(changed.case, "snapshot").rows()}
    stale = {row["v"] for row in rows} - standing
    assert any("late" in text for text in stale if text)


FLINK = {
    "type": "record",
    "name": "row",
    "fields": [
        {"name": name, "type": ["null", kind], "default": None}
        for name, kind in {
            TIME: "string",
            KEY: "string",
            "_hoodie_operation": "string",
            "k": "string",
            "ts": "long",
            "v": "string",
        }.items()
    ],
}
"""What Flink's changelog mode writes: no schema of the table names the column of operations."""


def test_changes_of_flink_have_their_kinds(tmp_path: Path) -> None:
    lake = HudiLake("v9_mor_commit_time", tmp_path)
    table = opened(lake.case, place=lake.table)
    first, second = table.writes[:2]
    written = second.id.partition("_")[0]
    (log,) = lake.table.rglob(f".*_{written}.log.*")
    rows = [("a", "U", "new"), ("a", "-U", "old"), ("z", "I", "fresh"), ("b", "D", "gone")]
    content = [
        {TIME: written, KEY: key, "k": key, "ts": 50, "v": text, "_hoodie_operation": operation}
        for key, operation, text in reversed(rows)
    ]
    log.write_bytes(rows_block(written, content, FLINK))

    changes = table.rows(InstantRange(first, second))
    merged = Golden(lake.case, "snapshot", lake.table).rows(InstantRange(None, second))

    assert {(row[KEY], row[KIND], row["v"]) for row in changes} == {
        ("a", "UPDATE_BEFORE", "old"),
        ("a", "UPDATE_AFTER", "new"),
        ("z", "INSERT", "fresh"),
        ("b", "DELETE", None),
    }
    standing = {row["k"]: row["v"] for row in merged}
    assert (standing["a"], standing["z"], "b" in standing) == ("new", "fresh", False)


def test_partial_records_are_marked_and_lack_what_was_not_set() -> None:
    changed = opened("v9_mor_partial_commit")
    first, *_, last = changed.writes

    partial = [row for row in changed.rows(InstantRange(first, last)) if row[PARTIAL]]

    assert partial
    assert all(row[KEY] == row["k"] for row in partial)
    assert any(None in row.values() for row in partial)


FROM_FULL = ["v9_mor_basic", "v9_mor_log_only_inmemory", "v9_mor_many_blocks"]


@pytest.mark.parametrize("case", FROM_FULL)
def test_first_window_of_a_full_start_is_the_whole_table_also_of_logs_without_a_base_file(
    case: str,
) -> None:
    found = opened(case).rows()

    own = [{name: row[name] for name in row if name not in OF_CHANGES} for row in found]
    assert texts(own) == texts(Golden(case, "snapshot").rows())
    assert {row[KIND] for row in found} == {"UPSERT"}


def test_compaction_and_clustering_are_no_changes() -> None:
    changed = opened("v9_mor_compaction_inline")
    first, *later = changed.writes

    times = {row[TIME] for row in changed.rows(InstantRange(first, later[-1]))}

    assert times <= {it.id.partition("_")[0] for it in later}


@pytest.mark.parametrize("start", ["earliest", "from the first", "after a time before"])
def test_changelog_from_the_earliest_write_has_every_write(start: str) -> None:
    first = opened("v9_cow_basic").writes[0].id.partition("_")[0]
    said = {
        "from the first": {"from": first},
        "after a time before": {"after": "2020-01-01T00:00Z"},
    }
    changed = opened("v9_cow_basic", start=said.get(start, start))
    assert changed.source.timeline.first_checkpoint(changed.pin) is None

    rows = changed.rows(InstantRange(None, changed.writes[-1]))

    assert texts(followed([], rows)) == texts(Golden("v9_cow_basic", "snapshot").rows())
    assert {row[ORDINAL] for row in rows} == set(range(len(changed.writes)))


def test_changelog_from_the_full_table_begins_with_its_rows() -> None:
    changed = opened("v9_cow_basic")

    rows = changed.rows(InstantRange(None, changed.writes[-1]))

    assert texts(followed([], rows)) == texts(Golden("v9_cow_basic", "snapshot").rows())
    assert {(row[KIND], row[ORDINAL], row[PARTIAL]) for row in rows} == {("UPSERT", 0, False)}


def test_table_without_commit_times_has_no_changelog() -> None:
    with pytest.raises(HudiCommitTimesMissing, match="populate"):
        Golden("v9_cow_no_meta", "changelog")


def test_published_changes_add_up_to_the_table(tmp_path: Path) -> None:
    lake = HudiLake("v9_mor_part_plain", tmp_path, by=("p",))
    columns = ["k", "ts", "v", "p", KIND, ORDINAL, KEY, FOLDER, TIME]
    for requested in lake.writes:
        lake.stand_after(requested)
        lake.take(source={"read": {"mode": "changelog", "columns": columns}})

    found = [dict(zip(columns, row, strict=True)) for row in lake.columns(*columns)]
    assert Counter(row[KIND] for row in found) == {"UPSERT": 6, "DELETE": 1}
    ordered = [{**row, ORDINAL: row[TIME]} for row in found]
    assert texts(followed([], ordered)) == lake.rows_after(lake.writes[-1])
