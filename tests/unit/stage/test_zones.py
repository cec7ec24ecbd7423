"""Offsets of whole columns, against zoneinfo moment by moment, around every change of the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from tidegate.stage.zones import ZoneOffsets, zone_offsets

CHANGES = [
    pytest.param("America/New_York", datetime(2026, 3, 8, 7, tzinfo=UTC), id="forward"),
    pytest.param("America/New_York", datetime(2026, 11, 1, 6, tzinfo=UTC), id="back"),
    pytest.param("Australia/Lord_Howe", datetime(2026, 4, 4, 15, tzinfo=UTC), id="half-an-hour"),
    pytest.param(
        "Asia/Kathmandu", datetime(1985, 12, 31, 18, 30, tzinfo=UTC), id="quarter-hour-zone"
    ),
    pytest.param("Africa/Monrovia", datetime(1972, 1, 7, 0, 44, 30, tzinfo=UTC), id="odd-seconds"),
    pytest.param("Pacific/Apia", datetime(2011, 12, 30, 10, tzinfo=UTC), id="a-day-skipped"),
    pytest.param("America/New_York", datetime(2050, 3, 13, 7, tzinfo=UTC), id="by-rule-after-2037"),
    pytest.param("Europe/Berlin", datetime(1, 1, 3, tzinfo=UTC), id="first-days"),
]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moments_around(change: datetime) -> list[datetime]:
    return [change + timedelta(minutes=10 * step, seconds=29) for step in range(-20, 21)]


@pytest.mark.parametrize(("timezone", "change"), CHANGES)
def test_at_instants_around_a_change_equals_zoneinfo(timezone: str, change: datetime) -> None:
    moments = moments_around(change)
    seconds = np.array([(at - EPOCH) // timedelta(seconds=1) for at in moments])

    found = ZoneOffsets(ZoneInfo(timezone)).at_instants(seconds)

    assert found.tolist() == [
        at.astimezone(ZoneInfo(timezone)).utcoffset() / timedelta(seconds=1) for at in moments
    ]


@pytest.mark.parametrize(("timezone", "change"), CHANGES)
def test_at_wall_clock_around_a_change_equals_zoneinfo(timezone: str, change: datetime) -> None:
    local = change.astimezone(ZoneInfo(timezone)).replace(tzinfo=None)
    clocks = [at.replace(tzinfo=None) for at in moments_around(local.replace(tzinfo=UTC))]
    seconds = np.array([(at.replace(tzinfo=UTC) - EPOCH) // timedelta(seconds=1) for at in clocks])

    found = ZoneOffsets(ZoneInfo(timezone)).at_wall_clock(seconds)

    assert found.tolist() == [
        at.replace(tzinfo=ZoneInfo(timezone)).utcoffset() / timedelta(seconds=1) for at in clocks
    ]


def test_at_instants_asked_twice_gives_the_same() -> None:
    offsets = ZoneOffsets(ZoneInfo("Europe/Berlin"))
    seconds = np.arange(0, 400 * 86_400, 1_800)

    assert (offsets.at_instants(seconds) == offsets.at_instants(seconds)).all()


def test_zone_offsets_utc_has_none() -> None:
    assert zone_offsets("UTC") is None
