"""Dates counted by two calendars keep year, month and day, at any depth, sliced or not."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.physical.old_dates import gregorian

FIRST = date(1582, 10, 15)
GAP = timedelta(days=10)
"""The days that were left out before the first one."""


def days_of_java(day: date) -> int:
    """Count the days up to a date by both calendars, year by year and month by month."""
    if day >= FIRST:
        return (day - date(1970, 1, 1)).days
    leap = day.year % 4 == 0
    months = [31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    before = sum(366 if year % 4 == 0 else 365 for year in range(1, day.year))
    # The first of January of the year 1 is two days before that of the Gregorian calendar.
    return before + sum(months[: day.month - 1]) + day.day - 1 - 719_162 - 2


DATES = st.none() | st.dates().filter(lambda day: not FIRST - GAP <= day < FIRST)


def counted(days: list[date | None]) -> pa.Array:
    counts = [None if day is None else days_of_java(day) for day in days]
    return pa.array(counts, pa.int32()).cast(pa.date32())


@given(st.lists(DATES, max_size=12), st.integers(0, 4), st.integers(0, 12))
def test_any_date_keeps_year_month_and_day(
    days: list[date | None], start: int, length: int
) -> None:
    found = gregorian(counted(days).slice(start, length))

    found.validate(full=True)
    assert found.to_pylist() == days[start : start + length]


@pytest.mark.parametrize(
    "edge",
    [
        pytest.param(FIRST - GAP - timedelta(days=1), id="last of the older calendar"),
        pytest.param(FIRST, id="first of the newer calendar"),
        pytest.param(date(1500, 2, 28), id="before a leap day of the older calendar alone"),
        pytest.param(date(1500, 3, 1), id="after a leap day of the older calendar alone"),
        pytest.param(date(1200, 2, 29), id="leap day of both calendars"),
        pytest.param(date.min, id="first that Python has"),
    ],
)
def test_date_at_an_edge_keeps_year_month_and_day(edge: date) -> None:
    assert gregorian(counted([edge])).to_pylist() == [edge]
    assert gregorian(counted([date(1000, 1, 1), edge])).to_pylist() == [date(1000, 1, 1), edge]


@given(st.lists(st.none() | st.lists(DATES, max_size=3), max_size=8), st.integers(0, 3))
def test_dates_in_lists_structs_and_maps_are_found(
    rows: list[list[date | None] | None], start: int
) -> None:
    flat = counted([day for row in rows for day in row or ()])
    ends = np.cumsum([0, *(len(row or ()) for row in rows)])
    offsets = pa.array(
        [None if row is None else end for row, end in zip(rows, ends[:-1], strict=True)]
        + [ends[-1]]
    )
    lists = pa.ListArray.from_arrays(offsets.cast(pa.int32()), flat)
    numbers = pa.array(range(len(rows)))
    mask = pa.array([number % 3 == 1 for number in range(len(rows))], pa.bool_())
    structs = pa.StructArray.from_arrays([lists, numbers], ["days", "n"], mask=mask)
    keyed = pa.MapArray.from_arrays(pa.array(range(len(rows) + 1), pa.int32()), numbers, structs)

    found = gregorian(keyed.slice(start))

    found.validate(full=True)
    assert (
        found.to_pylist()
        == [
            [(number, None if number % 3 == 1 else {"days": row, "n": number})]
            for number, row in enumerate(rows)
        ][start:]
    )
