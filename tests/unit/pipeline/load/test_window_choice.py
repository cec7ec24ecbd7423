"""Which window a run gets: consecutive windows join, history never overlaps."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import WindowOverlap
from tidegate.model.instant import DataInterval, Instant, InstantRange
from tidegate.model.ledger_rows import PipelineState, WindowState
from tidegate.model.plan import Window, WindowKind
from tidegate.pipeline.load import window_choice as taking

START = datetime(2026, 2, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)

hours = st.lists(st.integers(0, 30), max_size=12)


def instants(times: list[int]) -> list[Instant]:
    """Give instants in the source's order, whose times may go back and forth."""
    return [Instant(str(number), START + HOUR * time) for number, time in enumerate(times, 1)]


def between(first: int, last: int) -> DataInterval:
    return DataInterval(START + HOUR * first, START + HOUR * last)


def window(
    sequence: int,
    taken: InstantRange,
    kind: WindowKind = WindowKind.LOAD,
    interval: DataInterval | None = None,
) -> WindowState:
    return WindowState(
        window=Window(sequence, taken, kind, interval, f"run-{sequence}"),
        sealed=True,
        attempt=1,
        owner=None,
        expires=None,
        plan_digest="p",
        summary=None,
        taken_at=START,
        sealed_at=START,
        number=sequence,
    )


def state(checkpoint: Instant | None) -> PipelineState:
    return PipelineState("p", "l", "/t", "s", True, None, checkpoint, None, None, 1, 1, 0)


@given(hours, st.lists(st.integers(0, 32), max_size=12))
def test_ahead_in_any_order_of_runs_joins_without_gap_or_overlap(
    times: list[int], ends: list[int]
) -> None:
    everything = instants(times)
    taken: list[Instant] = []
    checkpoint: Instant | None = None

    for end in [*ends, None]:
        left = everything[len(taken) :]
        bound = None if end is None else START + HOUR * end
        found = taking.ahead(left, checkpoint, bound)
        if found is None:
            assert not left or (bound is not None and left[0].time >= bound)
            continue
        assert found.start_exclusive == checkpoint
        taken += left[: left.index(found.end_inclusive) + 1]
        checkpoint = found.end_inclusive

    assert taken == everything


@given(hours, st.integers(0, 32))
def test_ahead_takes_nothing_at_or_past_the_end(times: list[int], end: int) -> None:
    everything, bound = instants(times), START + HOUR * end

    found = taking.ahead(everything, None, bound)

    if found is not None:
        last = everything.index(found.end_inclusive)
        assert all(item.time < bound for item in everything[: last + 1])
        assert last + 1 == len(everything) or everything[last + 1].time >= bound


def test_ahead_at_exactly_the_end_leaves_the_instant_to_the_next_run() -> None:
    everything = instants([1, 2])

    found = taking.ahead(everything, None, START + 2 * HOUR)

    assert found == InstantRange(None, everything[0])


@pytest.mark.parametrize(
    ("checkpoint", "behind"),
    [
        pytest.param(23, False, id="before the end"),
        pytest.param(24, True, id="at the end"),
        pytest.param(25, True, id="after the end"),
    ],
)
def test_is_behind_compares_checkpoint_and_end(checkpoint: int, behind: bool) -> None:
    stands = Instant("c", START + HOUR * checkpoint)

    assert taking.is_behind(between(0, 24), state(stands), (), None) is behind


def test_is_behind_with_a_window_taken_for_the_interval_is_true() -> None:
    """More instants may lie in it by now; those are the next run's."""
    first = instants([1])[0]
    taken = window(1, InstantRange(None, first), interval=between(0, 24))

    assert taking.is_behind(between(0, 24), state(first), [taken], None)
    assert not taking.is_behind(between(0, 25), state(first), [taken], None)


def test_is_behind_without_interval_or_checkpoint_is_false() -> None:
    first = instants([1])[0]

    assert not taking.is_behind(None, state(first), (), None)
    assert not taking.is_behind(between(0, 24), state(None), (), None)


@pytest.mark.parametrize(
    ("start", "behind"),
    [
        pytest.param(23, False, id="start before the end"),
        pytest.param(24, True, id="start at the end"),
        pytest.param(25, True, id="start after the end"),
    ],
)
def test_is_behind_before_the_first_window_compares_start_and_end(start: int, behind: bool) -> None:
    """Whether a later run has taken a window does not change what an interval before it brings."""
    first = instants([20])[0]
    fixed = replace(state(first), first_start=first)
    taken = replace(fixed, checkpoint=instants([22])[0])

    assert taking.is_behind(between(0, 24), fixed, (), START + HOUR * start) is behind
    assert not taking.is_behind(between(0, 24), taken, (), START + HOUR * start)


cuts = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 10)), max_size=8)


@given(hours.map(sorted), cuts)
def test_history_of_any_intervals_takes_each_instant_at_most_once(
    times: list[int], asked: list[tuple[int, int]]
) -> None:
    retained = instants(times)
    windows: list[WindowState] = []
    taken: list[str] = []

    for first, width in asked:
        interval = between(first, first + width)
        inside = [item.id for item in retained if interval.covers(item.time)]
        try:
            found = taking.history(retained, interval, windows, "p")
        except WindowOverlap:
            assert set(inside) & set(taken)
            continue
        if found is None:
            assert set(inside) <= set(taken)
            continue
        start = retained.index(found.start_exclusive) + 1 if found.start_exclusive else 0
        ids = [item.id for item in retained[start : retained.index(found.end_inclusive) + 1]]
        assert ids == inside
        assert not set(ids) & set(taken)
        taken += ids
        windows.append(window(len(windows) + 1, found, WindowKind.HISTORY, interval))


def test_history_covered_by_two_windows_is_replayed() -> None:
    retained = instants([1, 2])
    windows = [
        window(1, InstantRange(None, retained[0]), WindowKind.HISTORY),
        window(2, InstantRange(retained[0], retained[1]), WindowKind.HISTORY),
    ]

    assert taking.history(retained, between(0, 24), windows, "p") is None


def test_history_beside_load_windows_overlaps_nothing() -> None:
    retained = instants([1, 2])
    loaded = window(1, InstantRange(retained[-1], Instant("9", START + 9 * HOUR)))

    found = taking.history(retained, between(0, 24), [loaded], "p")

    assert found == InstantRange(None, retained[-1])


def test_covering_finds_the_first_load_window_that_ends_behind_the_interval() -> None:
    found = [
        window(number, InstantRange(None, Instant(str(number), START + HOUR * time)), kind)
        for number, (time, kind) in enumerate(
            [
                (10, WindowKind.LOAD),
                (40, WindowKind.HISTORY),
                (24, WindowKind.LOAD),
                (50, WindowKind.LOAD),
            ],
            1,
        )
    ]

    covering = taking.covering(found, between(0, 24))

    assert covering is found[2]
    assert taking.covering(found[:2], between(0, 24)) is None


@pytest.mark.parametrize(("end", "is_covered"), [(10, False), (11, True)])
def test_window_covers_nothing_that_ends_before_it_begins(end: int, is_covered: bool) -> None:
    start, head = (Instant(str(time), START + HOUR * time) for time in (10, 20))
    found = [window(1, InstantRange(start, head), WindowKind.LOAD)]

    assert (taking.covering(found, between(0, end)) is not None) == is_covered
