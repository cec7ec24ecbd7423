"""Partitions are counted by the bounds of event times, as far as these tell."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.partition import Transform
from tidegate.model.time_bounds import TimeBounds
from tidegate.plan.fan_out import FanOut

DAYS = FanOut(Transform.DAY, "UTC")
FIRST = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("transform", "zone", "first", "last", "count"),
    [
        (Transform.DAY, "UTC", "2026-03-01T00:00", "2026-03-01T23:59", 1),
        (Transform.DAY, "UTC", "2026-02-28T23:59", "2026-03-01T00:00", 2),
        (Transform.DAY, "Asia/Kathmandu", "2026-03-01T18:14", "2026-03-01T18:15", 2),
        (Transform.HOUR, "UTC", "2026-03-01T00:00", "2026-03-02T00:00", 25),
        (Transform.MONTH, "UTC", "2025-12-31T00:00", "2026-01-01T00:00", 2),
        (Transform.MONTH, "UTC", "2019-01-01T00:00", "2025-12-31T00:00", 84),
    ],
)
def test_partitions_between_two_times(
    transform: Transform, zone: str, first: str, last: str, count: int
) -> None:
    times = TimeBounds(
        datetime.fromisoformat(f"{first}+00:00"), datetime.fromisoformat(f"{last}+00:00")
    )

    assert FanOut(transform, zone).at_least(times) == count


def test_rows_without_event_times_fall_into_one_partition() -> None:
    assert DAYS.at_least(TimeBounds()) == 1
    assert DAYS.at_least(None) is None


def test_first_and_last_moment_of_the_calendar_are_counted() -> None:
    ends = TimeBounds(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))

    for zone in ("America/New_York", "Asia/Tokyo"):
        assert FanOut(Transform.MONTH, zone).at_least(ends) in range(9_998 * 12, 9_999 * 12 + 1)


@given(days=st.integers(1, 400), most=st.none() | st.integers(1, 50))
def test_rebuild_writes_no_more_partitions_than_it_names(days: int, most: int | None) -> None:
    times = TimeBounds(FIRST, FIRST + timedelta(days=days - 1))
    fan_out = replace(DAYS, most=most)

    expected = days if most is None else min(days, most)
    assert (fan_out.at_least(times), fan_out.at_most(times)) == (expected, expected)
    assert (fan_out.at_least(None), fan_out.at_most(None)) == (None, most)


def test_keys_beside_the_event_time_have_any_number_of_values() -> None:
    times = TimeBounds(FIRST, FIRST)

    by_day_and_region = replace(DAYS, has_other_keys=True)
    by_region = FanOut(None, "UTC", has_other_keys=True)
    assert (by_day_and_region.at_least(times), by_day_and_region.at_most(times)) == (1, None)
    assert (by_region.at_least(times), by_region.at_most(times)) == (None, None)
    assert replace(by_region, most=2).at_most(times) == 2
