"""What a window brought is what its messages say, added up once (PC-W02)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.message import CommitMessage, EventTimes, HeldPartition, PartFile, Staged
from tidegate.model.partition import Partition
from tidegate.model.plan import WindowKind
from tidegate.stage.contributions import contributions_of, emptied, summary_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = [Partition((("dt", f"2026-01-0{number}"),)) for number in (1, 2, 3)]
RULES = ["late", "odd", "dropped"]
SCAN: Any = SimpleNamespace(
    digest="p1",
    window=SimpleNamespace(sequence=7, kind=WindowKind.LOAD),
    config={
        "target": {"write": "append"},
        "rows": [
            {"name": name, "on_failure": "drop" if name == "dropped" else "hold"} for name in RULES
        ],
    },
)


def _part(day: Partition, hour: int, rows: int) -> PartFile:
    times = EventTimes(NOW + timedelta(hours=hour), NOW + timedelta(hours=hour + 1), 1)
    return PartFile(day, "part", "staged/part", rows * 10, "00", rows, times)


PARTS = st.lists(
    st.builds(_part, st.sampled_from(DAYS), st.integers(0, 9), st.integers(1, 5)), max_size=4
)


def _message(number: int, parts: list[PartFile], **keys: Any) -> CommitMessage:
    return CommitMessage(f"s{number}", "a", Staged(tuple(parts), (), 9, 9, **keys))


def _scan(write: str, kind: WindowKind) -> Any:
    config = {
        "name": "orders",
        "source": {"kind": "files", "path": "/in"},
        "event_time": "at",
        "target": {"path": "/out", "partition_by": {"dt": "dt"}, "write": write},
        "rows": [],
    }
    span = SimpleNamespace(end_inclusive=SimpleNamespace(time=NOW))
    window = SimpleNamespace(sequence=7, kind=kind, range=span)
    return SimpleNamespace(digest="p1", window=window, config=config, read_whole=())


@given(st.lists(PARTS, max_size=4))
def test_contributions_add_up_what_was_staged_by_partition(staged: list[list[PartFile]]) -> None:
    messages = [_message(number, parts) for number, parts in enumerate(staged)]

    found = contributions_of(messages, SCAN)

    assert [it.partition for it in found] == sorted(
        {part.partition for parts in staged for part in parts}, key=lambda it: it.path
    )
    for each in found:
        own = [part for parts in staged for part in parts if part.partition == each.partition]
        assert (each.rows, each.bytes) == (
            sum(part.rows for part in own),
            sum(part.length for part in own),
        )
        assert each.event_times == EventTimes(
            min(part.event_times.smallest for part in own if part.event_times.smallest),
            max(part.event_times.largest for part in own if part.event_times.largest),
            len(own),
        )
        assert each.messages == tuple(
            f"s{number}"
            for number, parts in enumerate(staged)
            if any(part.partition == each.partition for part in parts)
        )


@given(
    st.lists(
        st.dictionaries(st.sampled_from(DAYS), st.sets(st.sampled_from(RULES[:2]), min_size=1)),
        max_size=3,
    )
)
def test_partition_is_held_by_the_rules_that_its_rows_failed(
    failed: list[dict[Partition, set[str]]],
) -> None:
    messages = [
        _message(
            number,
            [_part(day, 0, 1) for day in DAYS],
            held=tuple(HeldPartition(day, tuple(names)) for day, names in rules.items()),
        )
        for number, rules in enumerate(failed or [{}])
    ]

    found = {it.partition: it.held_rule for it in contributions_of(messages, SCAN)}

    for day in DAYS:
        names = {name for rules in failed for name in rules.get(day, ())}
        assert found[day] == (", ".join(it for it in RULES if it in names) or None)


def test_message_from_before_rules_were_told_apart_names_all_that_hold() -> None:
    message = _message(1, [_part(DAYS[0], 0, 1)], held=(HeldPartition(DAYS[0], ()),))

    (found,) = contributions_of([message], SCAN)

    assert (found.held_rule, found.held_rows) == ("late, odd", None)


def test_rows_that_hold_a_partition_are_added_up_by_rule() -> None:
    counts = [{"late": 2, "odd": 1}, {"odd": 5_000}]
    held = [(HeldPartition(DAYS[0], tuple(rows), rows),) for rows in counts]
    messages = [
        _message(number, [_part(day, 0, 9) for day in DAYS], held=each)
        for number, each in enumerate(held)
    ]

    found = {it.partition: it.held_rows for it in contributions_of(messages, SCAN)}

    assert found == {DAYS[0]: {"late": 2, "odd": 5_001}, DAYS[1]: None, DAYS[2]: None}


def test_rebuild_empties_the_partitions_that_it_found_no_row_for_and_that_are_known() -> None:
    window = SimpleNamespace(sequence=7, kind=WindowKind.REBUILD, partitions=tuple(DAYS))
    scan: Any = SimpleNamespace(
        digest="p1", window=window, read_whole=window.partitions, config=SCAN.config
    )
    messages = [_message(1, [_part(DAYS[0], 0, 4)])]

    found = list(emptied(messages, scan, lambda: DAYS[:2]))

    assert [(it.partition, it.rows, it.messages, it.kind) for it in found] == [
        (DAYS[1], 0, (), WindowKind.REBUILD)
    ]


def test_window_empties_all_known_partitions_of_a_group_that_it_read_whole() -> None:
    hours = [
        Partition((*day.values, ("hour", f"{hour:02}"))) for day in DAYS for hour in (8, 9, 10)
    ]
    window = SimpleNamespace(sequence=7, kind=WindowKind.REPLACE, partitions=())
    scan: Any = SimpleNamespace(
        digest="p1", window=window, read_whole=(DAYS[0], DAYS[2]), config=SCAN.config
    )
    messages = [_message(1, [_part(hours[1], 0, 4)])]

    found = list(emptied(messages, scan, lambda: hours[:8]))

    assert [it.partition for it in found] == [hours[0], hours[2], *hours[6:8]]


def test_window_that_read_nothing_whole_asks_for_no_partition() -> None:
    window = SimpleNamespace(sequence=7, kind=WindowKind.REPLACE, partitions=())
    scan: Any = SimpleNamespace(digest="p1", window=window, read_whole=(), config=SCAN.config)

    assert list(emptied([_message(1, [])], scan, known=None)) == []  # type: ignore[arg-type]


def test_summary_counts_the_rows_that_failed_each_rule_whatever_its_effect() -> None:
    scan: Any = SimpleNamespace(record=None, window=SCAN.window)
    hits = [{"late": 2, "odd": 0, "dropped": 1}, {"late": 3, "odd": 0, "dropped": 0}]

    messages = [_message(number, [], rule_hits=each) for number, each in enumerate(hits)]

    found = summary_of(messages, scan)

    assert found.rule_hits == {"late": 5, "odd": 0, "dropped": 1}
    assert found.merged(found).rule_hits == {"late": 10, "odd": 0, "dropped": 2}


def test_rows_of_a_message_that_does_not_count_them_are_unknown() -> None:
    held = [HeldPartition(DAYS[0], ("late",), {"late": 2}), HeldPartition(DAYS[0], ("late",))]
    messages = [
        _message(number, [_part(DAYS[0], 0, 9)], held=(each,)) for number, each in enumerate(held)
    ]

    (found,) = contributions_of(messages, SCAN)

    assert (found.held_rule, found.held_rows) == ("late", None)


@pytest.mark.parametrize(
    ("write", "kind", "overwrites", "as_of"),
    [
        ("append", WindowKind.LOAD, False, None),
        ("append", WindowKind.HISTORY, False, None),
        ("upsert", WindowKind.HISTORY, False, NOW),
        ("overwrite", WindowKind.HISTORY, True, NOW),
        ("overwrite", WindowKind.LOAD, True, None),
        ("overwrite", WindowKind.REBUILD, False, None),
    ],
)
def test_window_tells_what_its_rows_replace_and_what_orders_them(
    write: str, kind: WindowKind, overwrites: bool, as_of: datetime | None
) -> None:
    scan = _scan(write, kind)

    (found,) = contributions_of([_message(1, [_part(DAYS[0], 0, 4)])], scan)

    assert (found.overwrites, found.as_of) == (overwrites, as_of)


def test_history_whose_rows_are_all_erased_empties_its_partitions_in_its_turn() -> None:
    scan = _scan("overwrite", WindowKind.HISTORY)
    messages = [_message(1, [_part(DAYS[0], 0, 4)], emptied=(DAYS[0], DAYS[1]))]

    (found,) = emptied(messages, scan, list)

    assert (found.partition, found.overwrites, found.as_of) == (DAYS[1], True, NOW)


def test_rows_of_a_rebuild_that_were_put_aside_are_not_elsewhere() -> None:
    aside = (_part(Partition(()), 0, 2),)
    scan: Any = SimpleNamespace(record=None, window=SimpleNamespace(kind=WindowKind.REBUILD))

    found = summary_of([CommitMessage("s", "a", Staged((), aside, 9, 4))], scan)

    assert (found.rows_kept, found.rows_quarantined, found.rows_elsewhere) == (4, 2, 3)
