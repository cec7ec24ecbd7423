"""Look up offsets from UTC for whole columns, by the same zone rules as the rest of Tidegate.

Arrow's own conversion is not used: it reads the transitions listed in the system's zone files and
ignores the rule that applies after the last one, so that it knows no summer time after 2037, or, if
the files are built in the slim format, after 2007.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np

from tidegate.physical.arrays import Integers, distinct

SECONDS_PER_HOUR = 3_600

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 (wall clock, of whatever zone)
# A day inside the range of datetime, so that no offset leads outside.
_FIRST = (datetime(1, 1, 2, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
_LAST = (datetime(9999, 12, 30, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(
    seconds=1
)
_MOST_REMEMBERED = 1 << 18

_Lookup = Callable[[int], int]
"""Seconds since 1970 → offset from UTC in seconds."""


class ZoneOffsets:
    """The offsets of one zone, with a cache."""

    def __init__(self, zone: ZoneInfo) -> None:
        self._zone = zone
        self._by_instant: dict[int, int | None] = {}
        self._by_wall_clock: dict[int, int | None] = {}

    def at_instants(self, seconds: Integers) -> Integers:
        """Return the offset at each instant.

        Args:
            seconds: int64[n] since 1970-01-01T00:00Z.

        Returns:
            int64[n] to add for wall clock.
        """
        return _offsets(seconds, self._at_instant, self._by_instant)

    def at_wall_clock(self, seconds: Integers) -> Integers:
        """Return the offset of each wall clock time.

        A time that occurs twice is its first occurrence; one that the clock skipped is moved
        forward by the gap (PC-T19).

        Args:
            seconds: int64[n] since local 1970-01-01T00:00.

        Returns:
            int64[n] to subtract for instants.
        """
        return _offsets(seconds, self._at_wall_clock, self._by_wall_clock)

    def _at_instant(self, seconds: int) -> int:
        return _seconds(datetime.fromtimestamp(seconds, self._zone))

    def _at_wall_clock(self, seconds: int) -> int:
        return _seconds((_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=self._zone))


@functools.cache
def zone_offsets(timezone: str) -> ZoneOffsets | None:
    """Return a zone's offsets; None for UTC, which has none."""
    return None if timezone in {"UTC", "Etc/UTC"} else ZoneOffsets(ZoneInfo(timezone))


def _offsets(seconds: Integers, lookup: _Lookup, known: dict[int, int | None]) -> Integers:
    """Look up once per hour, and per second in the hours in which the offset changes."""
    clipped = np.clip(seconds, _FIRST, _LAST)
    codes, hours = distinct(clipped // SECONDS_PER_HOUR)
    by_hour = [_of_hour(hour, lookup, known) for hour in hours]
    found = np.array([0 if offset is None else offset for offset in by_hour], dtype=np.int64)[codes]
    changing = [code for code, offset in enumerate(by_hour) if offset is None]
    if changing:
        rows = np.isin(codes, changing)
        row_codes, moments = distinct(clipped[rows])
        found[rows] = np.array([lookup(moment) for moment in moments], dtype=np.int64)[row_codes]
    return found


def _of_hour(hour: int, lookup: _Lookup, known: dict[int, int | None]) -> int | None:
    """Return the offset of a whole hour, None if it changes within."""
    if hour not in known:
        if len(known) >= _MOST_REMEMBERED:
            known.clear()
        start = hour * SECONDS_PER_HOUR
        first, last = lookup(start), lookup(start + SECONDS_PER_HOUR - 1)
        # An offset returned and not looked up again: another thread may clear what is remembered.
        offset = first if first == last else None
        known[hour] = offset
        return offset
    return known.get(hour)


def _seconds(moment: datetime) -> int:
    offset = moment.utcoffset()
    return 0 if offset is None else int(offset.total_seconds())
