"""The watermark: bounds, lateness, silence, and that it never goes back."""

# ruff: noqa: DTZ001 (partition times are wall clock, and naive for that)

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.commit.watermark import advance, commit_times, is_idle
from tidegate.config import EventTimeConfig
from tidegate.model.message import EventTimes
from tidegate.model.watermark import WatermarkStep

NOW = datetime(2013, 2, 12, 18, tzinfo=UTC)
HOUR = timedelta(hours=1)
NONE = EventTimes()


def brought(moment: datetime, **counts: int) -> EventTimes:
    """Make the event times of a window whose largest is `moment`."""
    return EventTimes(moment, moment, **counts)


def step(
    said: EventTimeConfig | None,
    *windows: tuple[datetime, EventTimes, int],
    is_unread: bool = False,
) -> WatermarkStep:
    """Announce windows (clock, event times, rows) one after another; give the last step."""
    found = None
    for now, event_times, rows in windows:
        found = advance(
            said, found, event_times, rows_read=rows, now=now, is_unread=lambda: is_unread
        )
    assert found is not None
    return found


def test_advance_subtracts_the_lateness() -> None:
    said = EventTimeConfig(column="at", lateness="6h")

    found = step(said, (NOW, brought(NOW - HOUR), 1))

    assert found.value == NOW - 7 * HOUR
    assert found.largest_event_time == NOW - HOUR
    assert found.lateness_seconds == 6 * 3600


def test_advance_without_any_event_time_is_undefined() -> None:
    """PC-W09."""
    said = EventTimeConfig(column="at")

    found = step(said, (NOW, EventTimes(missing=3), 3))

    assert found.value is None
    assert found.last_data_at == NOW


def test_advance_by_rows_of_the_future_does_not_move_it() -> None:
    """Design §7: one row of the year 2099 must not open the gate."""
    said = EventTimeConfig(column="at")

    found = step(said, (NOW, brought(NOW), 5), (NOW + HOUR, EventTimes(future=2), 2))

    assert found.value == NOW
    assert found.future_rows == 2


def test_advance_by_old_rows_does_not_go_back() -> None:
    """PC-W04."""
    said = EventTimeConfig(column="at")

    found = step(said, (NOW, brought(NOW), 1), (NOW, brought(NOW - 1000 * HOUR), 1))

    assert found.value == found.previous == NOW
    assert found.largest_event_time == NOW - 1000 * HOUR


def test_advance_with_more_lateness_than_before_does_not_go_back() -> None:
    first = step(EventTimeConfig(column="at"), (NOW, brought(NOW), 1))

    second = advance(
        EventTimeConfig(column="at", lateness="2d"),
        first,
        brought(NOW),
        rows_read=1,
        now=NOW,
        is_unread=lambda: False,
    )

    assert second.value == NOW


def test_advance_without_event_time_column_keeps_what_was() -> None:
    found = step(None, (NOW, NONE, 5))

    assert found.value is None
    assert found.idle is False
    assert found.lateness_seconds == 0
    assert found.last_data_at == NOW


@pytest.mark.parametrize(
    ("silence", "idle"),
    [
        (2 * HOUR - timedelta(microseconds=1), False),
        (2 * HOUR, True),
        (2 * HOUR + timedelta(microseconds=1), True),
    ],
    ids=["one before", "at the time-out", "one past"],
)
def test_source_without_rows_is_idle_from_the_time_out_on(silence: timedelta, idle: bool) -> None:
    said = EventTimeConfig(column="at", idle_timeout="2h")

    found = step(said, (NOW, brought(NOW), 1), (NOW + silence, NONE, 0))

    assert found.idle is idle
    assert found.value == NOW
    assert found.last_data_at == NOW


def test_idle_source_that_advances_follows_the_clock() -> None:
    said = EventTimeConfig(column="at", idle_timeout="2h", when_idle="advance", lateness="1h")

    found = step(said, (NOW, brought(NOW), 1), (NOW + 10 * HOUR, NONE, 0))

    assert found.value == NOW + 8 * HOUR


def test_idle_source_that_advances_starts_where_nothing_counted() -> None:
    said = EventTimeConfig(column="at", idle_timeout="2h", when_idle="advance")

    found = step(said, (NOW, EventTimes(missing=1), 1), (NOW + 3 * HOUR, NONE, 0))

    assert found.value == NOW + HOUR


def test_rows_that_do_not_count_still_break_the_silence() -> None:
    said = EventTimeConfig(column="at", idle_timeout="2h", when_idle="advance")

    found = step(said, (NOW, brought(NOW), 1), (NOW + 3 * HOUR, EventTimes(future=1), 1))

    assert found.idle is False
    assert found.value == NOW


@pytest.mark.parametrize(
    "event_times",
    [brought(NOW - 5 * HOUR), brought(NOW), EventTimes(missing=1), EventTimes(future=1)],
    ids=["older", "as old", "without a time", "of the future"],
)
def test_rows_that_do_not_raise_the_watermark_restart_the_time_out(event_times: EventTimes) -> None:
    said = EventTimeConfig(column="at", idle_timeout="2h", when_idle="advance")

    late = (NOW + HOUR, event_times, 1)
    found = step(said, (NOW, brought(NOW), 1), late, (NOW + 3 * HOUR, NONE, 0))
    before = step(said, (NOW, brought(NOW), 1), late, (NOW + 2.9 * HOUR, NONE, 0))

    assert (before.idle, before.value) == (False, NOW)
    assert (found.idle, found.value) == (True, NOW + HOUR)


def test_source_with_changes_that_no_window_took_is_not_idle() -> None:
    said = EventTimeConfig(column="at", idle_timeout="2h", when_idle="advance")

    found = step(said, (NOW, brought(NOW), 1), (NOW + 10 * HOUR, NONE, 0), is_unread=True)

    assert (found.idle, found.value, found.last_data_at) == (False, NOW, NOW)


def test_event_time_at_the_beginning_of_the_calendar_moves_nothing() -> None:
    said = EventTimeConfig(column="at", lateness="5m")
    zero = brought(datetime(1, 1, 1, tzinfo=UTC))

    assert step(said, (NOW, zero, 1)).value is None
    assert step(said, (NOW, brought(NOW), 1), (NOW, zero, 1)).value == NOW - timedelta(minutes=5)


def test_source_that_never_brought_a_row_is_not_idle() -> None:
    said = EventTimeConfig(column="at", idle_timeout="2h", when_idle="advance")

    found = step(said, (NOW, NONE, 0), (NOW + 100 * HOUR, NONE, 0))

    assert found.idle is False
    assert found.value is None


@pytest.mark.parametrize(
    "said", [None, EventTimeConfig(column="at")], ids=["no event time", "no time-out"]
)
def test_pipeline_without_time_out_is_never_idle(said: EventTimeConfig | None) -> None:
    assert not is_idle(said, NOW, NOW + 10_000 * HOUR)


moments = st.datetimes(datetime(2013, 1, 1), datetime(2013, 3, 1), timezones=st.just(UTC))
windows = st.one_of(
    st.tuples(moments, moments.map(brought), st.integers(1, 5)),
    st.tuples(moments, st.just(NONE), st.just(0)),
    st.tuples(moments, st.builds(EventTimes, future=st.integers(1, 3)), st.integers(1, 5)),
)
configs = st.builds(
    EventTimeConfig,
    column=st.just("at"),
    lateness=st.timedeltas(timedelta(0), timedelta(days=3)),
    idle_timeout=st.timedeltas(timedelta(minutes=1), timedelta(days=3)),
    when_idle=st.sampled_from(["wait", "advance"]),
)


@given(said=configs, arrived=st.lists(windows, min_size=1, max_size=12))
def test_watermark_never_goes_back(
    said: EventTimeConfig, arrived: list[tuple[datetime, EventTimes, int]]
) -> None:
    """PC-V36: not after a restart either, since all that counts is the last step."""
    found: WatermarkStep | None = None
    values = []
    for now, event_times, rows in sorted(arrived, key=lambda window: window[0]):
        found = advance(said, found, event_times, rows_read=rows, now=now, is_unread=lambda: False)
        values.append(found.value)

    defined = [value for value in values if value is not None]
    assert defined == sorted(defined)
    assert None not in values[len(values) - len(defined) :]


@given(said=configs, arrived=st.lists(moments, min_size=1, max_size=8))
def test_watermark_without_silence_is_the_largest_event_time_minus_lateness(
    said: EventTimeConfig, arrived: list[datetime]
) -> None:
    found = step(said, *((NOW, brought(moment), 1) for moment in arrived))

    assert found.value == max(arrived) - said.lateness


@given(
    found=st.builds(lambda said, moment: step(said, (NOW, brought(moment), 1)), configs, moments)
)
def test_step_survives_json(found: WatermarkStep) -> None:
    assert WatermarkStep.from_text(found.to_text()) == found


@pytest.mark.parametrize(
    ("late_by", "counts"),
    [(timedelta(0), True), (timedelta(minutes=5), True), (timedelta(minutes=6), False)],
    ids=["now", "tolerated", "future"],
)
def test_commit_time_stands_for_event_times_unless_it_lies_in_the_future(
    late_by: timedelta, counts: bool
) -> None:
    now = datetime(2026, 2, 1, tzinfo=UTC)
    said = EventTimeConfig.model_validate(
        {"watermark_from": "commit_time", "lateness": "1h", "future_tolerance": "5m"}
    )

    found = commit_times(now + late_by, said, now)
    moved = step(said, (now, found, 1))

    assert moved.value == (now + late_by - timedelta(hours=1) if counts else None)
    assert moved.future_rows == (0 if counts else 1)


def test_value_of_before_is_kept_until_there_is_one_by_the_new_measure() -> None:
    """PC-W04: it counts again if the measure is changed back."""
    by_one, by_other = EventTimeConfig(column="one"), EventTimeConfig(column="other")
    first = step(by_one, (NOW, brought(NOW), 1))

    def after(said: EventTimeConfig, before: WatermarkStep, found: EventTimes) -> WatermarkStep:
        return advance(said, before, found, rows_read=1, now=NOW, is_unread=lambda: False)

    empty = after(by_other, first, NONE)
    back = after(by_one, empty, brought(NOW - 9 * HOUR))
    other = after(by_other, empty, brought(NOW - 9 * HOUR))

    assert (empty.value, empty.basis) == (NOW, "one")
    assert (back.value, back.basis) == (NOW, "one")
    assert (other.value, other.basis) == (NOW - 9 * HOUR, "other")
