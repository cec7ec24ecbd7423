"""Event-time bounds, against Python's datetimes one by one."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import ColumnMissing, SchemaIncompatible
from tidegate.model.message import EventTimes
from tidegate.stage.event_bounds import EventClock

UTC = dt.UTC
NOW = dt.datetime(2026, 3, 5, 12, tzinfo=UTC)


def measured(kind: pa.DataType, values: list[object], timezone: str = "UTC") -> EventTimes:
    batch = pa.RecordBatch.from_arrays([pa.array(values, kind)], ["at"])
    return EventClock(batch.schema, "at", timezone, NOW).measure(batch)


@given(
    st.lists(
        st.none()
        | st.datetimes(
            dt.datetime.fromisoformat("2026-03-05T11:59:00"),
            dt.datetime.fromisoformat("2026-03-05T12:01:00"),
        ),
        min_size=1,
    )
)
def test_measure_any_rows_equals_one_by_one(moments: list[dt.datetime | None]) -> None:
    aware = [None if at is None else at.replace(tzinfo=UTC) for at in moments]

    found = measured(pa.timestamp("us", "UTC"), aware)

    counted = [at for at in aware if at is not None and at <= NOW]
    future = sum(at is not None and at > NOW for at in aware)
    missing = sum(at is None for at in aware)
    assert found == EventTimes(
        min(counted, default=None), max(counted, default=None), missing, future
    )


def test_measure_exactly_the_clock_still_counts() -> None:
    just_after = NOW + dt.timedelta(microseconds=1)

    assert measured(pa.timestamp("us", "UTC"), [NOW, just_after]) == EventTimes(NOW, NOW, 0, 1)


def test_measure_nanoseconds_rounds_down() -> None:
    batch = pa.RecordBatch.from_arrays(
        [pa.array([-1, 1_500], pa.int64()).cast(pa.timestamp("ns", "UTC"))], ["at"]
    )
    found = EventClock(batch.schema, "at", "UTC", NOW).measure(batch)

    epoch = dt.datetime(1970, 1, 1, tzinfo=UTC)
    step = dt.timedelta(microseconds=1)
    assert (found.smallest, found.largest) == (epoch - step, epoch + step)


def test_measure_naive_times_are_wall_clock_of_the_zone() -> None:
    found = measured(
        pa.timestamp("s"), [dt.datetime.fromisoformat("2026-01-05T09:00:00")], "America/New_York"
    )

    local = dt.datetime(2026, 1, 5, 9, tzinfo=ZoneInfo("America/New_York"))
    assert found.smallest == local.astimezone(UTC)


def test_measure_repeated_wall_clock_is_its_first_occurrence() -> None:
    found = measured(
        pa.timestamp("s"), [dt.datetime.fromisoformat("2025-11-02T01:30:00")], "America/New_York"
    )

    assert found.largest == dt.datetime(2025, 11, 2, 5, 30, tzinfo=UTC)


def test_measure_skipped_wall_clock_moves_forward_by_the_gap() -> None:
    found = measured(
        pa.timestamp("s"), [dt.datetime.fromisoformat("2025-03-09T02:30:00")], "America/New_York"
    )

    assert found.largest == dt.datetime(2025, 3, 9, 7, 30, tzinfo=UTC)


def test_measure_whole_numbers_beyond_what_is_signed_are_future() -> None:
    clock = EventClock(
        pa.schema([("at", pa.uint64())]), "at", "UTC", dt.datetime(2030, 1, 1, tzinfo=dt.UTC), "s"
    )
    column = pa.array([2, (1 << 64) - 1, 1 << 63, None], pa.uint64())

    found = clock.measure(pa.record_batch([column], names=["at"]))

    moment = dt.datetime(1970, 1, 1, 0, 0, 2, tzinfo=dt.UTC)
    assert found == EventTimes(moment, moment, missing=1, future=2)


def test_measure_dates_are_local_midnights() -> None:
    found = measured(pa.date32(), [dt.date(2026, 1, 5), dt.date(2026, 7, 5)], "Europe/Berlin")

    assert found.smallest == dt.datetime(2026, 1, 4, 23, tzinfo=UTC)


def test_measure_far_times_are_clipped_and_future() -> None:
    batch = pa.RecordBatch.from_arrays(
        [pa.array([2**62, -(2**62)], pa.int64()).cast(pa.timestamp("s", "UTC"))], ["at"]
    )

    found = EventClock(batch.schema, "at", "UTC", NOW).measure(batch)

    first = dt.datetime.min.replace(tzinfo=UTC)
    assert found == EventTimes(first, first, 0, 1)


def test_clock_unknown_column_is_refused() -> None:
    with pytest.raises(ColumnMissing, match="at"):
        EventClock(pa.schema([("n", pa.int8())]), "at", "UTC", NOW)


def test_clock_column_without_times_is_refused() -> None:
    with pytest.raises(SchemaIncompatible, match="a date or a whole number"):
        EventClock(pa.schema([("at", pa.string())]), "at", "UTC", NOW)


@pytest.mark.parametrize(
    ("unit", "per_second"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)]
)
@pytest.mark.parametrize("kind", [pa.int64(), pa.uint32()], ids=str)
def test_measure_whole_numbers_count_the_unit_since_1970(
    kind: pa.DataType, unit: str, per_second: int
) -> None:
    clock = EventClock(
        pa.schema([("at", kind)]), "at", "UTC", dt.datetime(2030, 1, 1, tzinfo=dt.UTC), unit
    )
    column = pa.array([2 * per_second, None], kind)

    found = clock.measure(pa.record_batch([column], names=["at"]))

    moment = dt.datetime(1970, 1, 1, 0, 0, 2, tzinfo=dt.UTC)
    assert found == EventTimes(moment, moment, missing=1)
