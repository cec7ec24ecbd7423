"""Columns of times as integers: true to the ends of what 64 bits hold, in every zone."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.stage.ticks import Ticks, instants, wall_clock

LIMITS = np.iinfo(np.int64)
PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


@given(
    value=st.integers(LIMITS.min, LIMITS.max),
    offset=st.integers(-86_399, 86_399),
    unit=st.sampled_from(sorted(PER_SECOND)),
    span=st.sampled_from([1, 3_600, 86_400]),
)
def test_moved_times_are_counted_as_python_counts_them(
    value: int, offset: int, unit: str, span: int
) -> None:
    per_second = PER_SECOND[unit]
    moved = Ticks(np.array([value]), None, per_second).moved(np.array([offset]))

    seconds = min(max(value // per_second + offset, LIMITS.min), LIMITS.max)
    assert moved.floor(span).tolist() == [seconds // span]
    # What is too far for microseconds is clipped before the offset is added.
    if abs(value) <= LIMITS.max * per_second // 1_000_000:
        exact = (value + offset * per_second) * 1_000_000 // per_second
        assert moved.microseconds().tolist() == [min(max(exact, LIMITS.min), LIMITS.max)]


@pytest.mark.parametrize(
    ("value", "zone", "day"),
    [
        (LIMITS.max, "Asia/Tokyo", "2262-04-12"),
        (LIMITS.max, "America/New_York", "2262-04-11"),
        (LIMITS.min + 1, "America/New_York", "1677-09-20"),
        (LIMITS.min + 1, "Asia/Tokyo", "1677-09-21"),
    ],
)
def test_wall_clock_of_the_last_nanosecond_is_the_day_of_its_zone(
    value: int, zone: str, day: str
) -> None:
    column = pa.array([value], pa.int64()).view(pa.timestamp("ns", "UTC"))

    (days,) = wall_clock(column, zone).floor(86_400).tolist()

    assert str(np.datetime64(days, "D")) == day


@pytest.mark.parametrize("unit", sorted(PER_SECOND))
def test_instant_of_a_wall_clock_is_that_of_zoneinfo(unit: str) -> None:
    local = datetime(2026, 7, 1, 12, 30)  # noqa: DTZ001 (wall clock)
    column = pa.array([local], pa.timestamp(unit))

    (found,) = instants(column, "Asia/Tokyo").microseconds().tolist()

    moment = local.replace(tzinfo=ZoneInfo("Asia/Tokyo")).astimezone(UTC)
    assert found == int(moment.timestamp()) * 1_000_000
