"""Read columns of times as integers: wall clock in a zone, or microseconds since 1970 in UTC.

Aware times are converted to the pipeline's zone, naive ones are wall clock in it (design §7).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.stage.arrays import Flags, Integers, integers, missing

SECONDS_PER_DAY = 86_400
SECONDS_PER_HOUR = 3_600
MICROSECONDS = 1_000_000

_TICKS_PER_SECOND = {"s": 1, "ms": 1_000, "us": MICROSECONDS, "ns": 1_000_000_000}
_UTC_NAMES = frozenset({"UTC", "Etc/UTC", "Z", "+00:00"})


@dataclass(frozen=True)
class Ticks:
    """Times of a column as integers."""

    values: Integers
    """int64[n]; 0 where missing."""
    missing: Flags | None
    """bool[n], true where the column is NULL; None if it nowhere is."""
    per_second: int

    def floor(self, seconds: int) -> Integers:
        """Count whole spans of so many seconds since 1970, rounding down before it, too."""
        return self.values // (seconds * self.per_second)

    def microseconds(self) -> Integers:
        """Give the times in microseconds, rounded down; what does not fit is clipped."""
        if self.per_second > MICROSECONDS:
            return self.values // (self.per_second // MICROSECONDS)
        factor = MICROSECONDS // self.per_second
        bound = np.iinfo(np.int64).max // factor
        return np.clip(self.values, -bound, bound) * factor


def wall_clock(column: pa.Array, timezone: str) -> Ticks:
    """Read local time since local 1970-01-01T00:00 in the pipeline's zone.

    Args:
        column: timestamp of any unit, aware or naive, or date, which is its midnight.
        timezone: the pipeline's zone.
    """
    if pa.types.is_date(column.type):
        return _days(column)
    if column.type.tz is not None and not _is_utc(timezone):
        column = pc.local_timestamp(column.cast(pa.timestamp(column.type.unit, tz=timezone)))
    return _timestamps(column)


def instants(column: pa.Array, timezone: str) -> Ticks:
    """Read time since 1970-01-01T00:00Z.

    A local time that occurs twice is its first occurrence (PC-T19), one that the clock skipped is
    the moment of the skip: the order of local times is kept.

    Args:
        column: timestamp of any unit, aware or naive, or date, which is its midnight.
        timezone: the pipeline's zone.
    """
    if pa.types.is_date(column.type):
        if _is_utc(timezone):
            return _days(column)
        column = column.cast(pa.date32()).cast(pa.timestamp("s"))
    if column.type.tz is None and not _is_utc(timezone):
        column = pc.assume_timezone(
            column, timezone=timezone, ambiguous="earliest", nonexistent="latest"
        )
    return _timestamps(column)


def _days(column: pa.Array) -> Ticks:
    days = column.cast(pa.date32())
    values = integers(days.view(pa.int32())).astype(np.int64) * SECONDS_PER_DAY
    return _ticks(values, missing(days), 1)


def _timestamps(column: pa.TimestampArray) -> Ticks:
    values = integers(column.view(pa.int64()))
    return _ticks(values, missing(column), _TICKS_PER_SECOND[column.type.unit])


def _ticks(values: Integers, absent: Flags | None, per_second: int) -> Ticks:
    return Ticks(values if absent is None else np.where(absent, 0, values), absent, per_second)


def _is_utc(timezone: str) -> bool:
    return timezone in _UTC_NAMES
