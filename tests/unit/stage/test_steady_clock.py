"""Between which times the clocks of a zone are changed, beside a look at each second."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.stage.steady_clock import moments_are_steady, wall_clock_is_steady
from tidegate.stage.ticks import instants, wall_clock

AWARE, NAIVE = pa.timestamp("us", "UTC"), pa.timestamp("us")
ZONES = ("America/St_Johns", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kolkata", "UTC")
CHANGES = (
    datetime(2010, 11, 7, 2, 31, tzinfo=UTC),
    datetime(2026, 3, 29, 1, tzinfo=UTC),
    datetime(2026, 10, 25, 1, tzinfo=UTC),
    datetime(2026, 4, 4, 15, tzinfo=UTC),
)


def ends(kind: pa.DataType, first: Any, last: Any) -> pa.Array:
    return pa.array([first, last]).cast(kind)


@pytest.mark.parametrize("kind", [AWARE, NAIVE], ids=["moments", "wall clock"])
@given(
    zone=st.sampled_from(ZONES),
    change=st.sampled_from(CHANGES),
    before=st.integers(-7_200, 7_200),
    seconds=st.integers(0, 10_000),
)
def test_steady_times_keep_their_order(
    kind: pa.DataType, zone: str, change: datetime, before: int, seconds: int
) -> None:
    first = int(change.timestamp()) - before
    times = pa.array(np.arange(first, first + seconds + 1) * 1_000_000).cast(kind)
    both = pa.array([times[0], times[-1]])
    is_key = kind == AWARE
    is_steady = (wall_clock_is_steady if is_key else moments_are_steady)(both, zone)
    seen = (wall_clock if is_key else instants)(times, zone).floor(1)

    if is_steady:
        assert (np.diff(seen) > 0).all()


@pytest.mark.parametrize("change", CHANGES[1:3])
def test_hours_without_a_change_are_steady(change: datetime) -> None:
    hour = timedelta(hours=1)
    second = timedelta(seconds=1)

    assert wall_clock_is_steady(ends(AWARE, change - hour, change - second), "Europe/Berlin")
    assert wall_clock_is_steady(ends(AWARE, change, change + hour), "Europe/Berlin")
    assert not wall_clock_is_steady(ends(AWARE, change - second, change), "Europe/Berlin")


def test_columns_that_no_zone_moves_are_steady() -> None:
    years = datetime(1990, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC)

    assert wall_clock_is_steady(ends(AWARE, *years), "UTC")
    assert moments_are_steady(ends(AWARE, *years), "Europe/Berlin")
    assert moments_are_steady(pa.array([1, 1 << 60]), "Europe/Berlin")
    assert wall_clock_is_steady(pa.array([date(1990, 1, 1), date(2030, 1, 1)]), "Europe/Berlin")


def test_years_are_not_steady_where_a_zone_moves_them() -> None:
    years = datetime(1990, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC)

    assert not wall_clock_is_steady(ends(AWARE, *years), "Asia/Kolkata")
    assert not moments_are_steady(pa.array([date(1990, 1, 1), date(2030, 1, 1)]), "Europe/Berlin")
