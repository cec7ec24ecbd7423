"""Stored numbers of a column are event times, widened by less than a microsecond."""

from __future__ import annotations

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.event_column import EventColumn
from tidegate.source.event_bounds import EventUnit

BERLIN = EventColumn("at", "Europe/Berlin", "ms")
PER_DAY = {"day": 1, "s": 86_400, "ms": 86_400_000, "us": 86_400_000_000}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pa.date32(), EventUnit("day", ZoneInfo("Europe/Berlin"))),
        (pa.timestamp("us"), EventUnit("us", ZoneInfo("Europe/Berlin"))),
        (pa.timestamp("ns", "Asia/Tokyo"), EventUnit("ns", None)),
        (pa.int64(), EventUnit("ms", None)),
        (pa.string(), None),
        (pa.float64(), None),
    ],
    ids=str,
)
def test_unit_of_a_column_follows_from_its_type(
    kind: pa.DataType, expected: EventUnit | None
) -> None:
    """Times without a zone are wall clock of the pipeline's; integers count as it says."""
    assert EventUnit.of(kind, BERLIN) == expected


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
@given(days=st.integers(-700_000, 2_900_000), part=st.floats(0, 0.999))
def test_moment_is_that_which_another_library_reads(unit: str, days: int, part: float) -> None:
    count = int((days + part) * PER_DAY[unit])
    micros = count * (PER_DAY["us"] // PER_DAY[unit])

    found = EventUnit(unit, None).at(count, up=False)

    read = pl.Series([micros]).cast(pl.Datetime("us", "UTC")).item()
    assert found == read.astimezone(UTC)


@given(day=st.dates(date(1900, 1, 1), date(2100, 1, 1)))
def test_day_begins_at_midnight_of_the_zone(day: date) -> None:
    zone = ZoneInfo("Europe/Berlin")

    found = EventUnit("day", zone).at((day - date(1970, 1, 1)).days, up=False)

    there = found.astimezone(zone)
    assert (there.date(), there.hour, there.minute, found.tzinfo) == (day, 0, 0, UTC)


@given(low=st.integers(-(2**62), 2**62), more=st.integers(0, 10_000))
def test_nanoseconds_are_inside_of_bounds_that_are_less_than_a_microsecond_wider(
    low: int, more: int
) -> None:
    """ICE-5.10: bounds may be wide, never narrow."""
    bounds = EventUnit("ns", None).between(low, low + more)
    assert bounds.smallest is not None
    assert bounds.largest is not None

    def nanoseconds(moment: datetime) -> int:
        since = moment - datetime(1970, 1, 1, tzinfo=UTC)
        return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1_000

    assert 0 <= low - nanoseconds(bounds.smallest) < 1_000
    assert 0 <= nanoseconds(bounds.largest) - (low + more) < 1_000


@pytest.mark.parametrize("count", [-(2**63), 2**63 - 1])
@pytest.mark.parametrize("zone", [None, ZoneInfo("Asia/Tokyo"), ZoneInfo("America/New_York")])
def test_number_beyond_the_calendar_is_its_end(count: int, zone: ZoneInfo | None) -> None:
    found = EventUnit("s", zone).between(count, count)

    assert found.smallest is not None
    end = date.max if count > 0 else date.min
    assert abs(found.smallest.date() - end).days <= 1
