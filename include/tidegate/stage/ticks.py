"""Read columns of times as integers: wall clock in a zone, or time since 1970 in UTC.

Aware times are converted to the pipeline's zone, naive ones are wall clock in it (design §7).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tidegate.physical.arrays import Flags, Integers, integers, missing
from tidegate.stage.zones import zone_offsets

SECONDS_PER_DAY = 86_400
MICROSECONDS = 1_000_000

_LIMITS = np.iinfo(np.int64)
_TICKS_PER_SECOND = {"s": 1, "ms": 1_000, "us": MICROSECONDS, "ns": 1_000_000_000}


@dataclass(frozen=True)
class Ticks:
    """The times of a column as integers."""

    values: Integers
    """int64[n]; 0 where missing."""
    missing: Flags | None
    """bool[n], true where the column is NULL; None if there are no NULLs."""
    per_second: int
    offsets: Integers | None = None
    """int64[n], seconds added to the values; the sum may exceed 64 bits."""

    def floor(self, seconds: int) -> Integers:
        """Return the number of whole spans of so many seconds since 1970, rounded down."""
        if self.offsets is None:
            return self.values // (seconds * self.per_second)
        return _sum(self.values // self.per_second, self.offsets) // seconds

    def microseconds(self) -> Integers:
        """Return the times in microseconds, rounded down and clipped to 64 bits."""
        if self.per_second > MICROSECONDS:
            found = self.values // (self.per_second // MICROSECONDS)
        else:
            factor = MICROSECONDS // self.per_second
            bound = _LIMITS.max // factor
            found = np.clip(self.values, -bound, bound) * factor
        return found if self.offsets is None else _sum(found, self.offsets * MICROSECONDS)

    def moved(self, seconds: Integers) -> Ticks:
        """Add seconds to each time."""
        return replace(self, offsets=seconds)


def wall_clock(column: pa.Array, timezone: str) -> Ticks:
    """Return the local time since local 1970-01-01T00:00 in the pipeline's zone.

    Args:
        column: timestamp of any unit, aware or naive, or date, which counts as its midnight.
        timezone: the pipeline's zone.
    """
    ticks = _ticks(column)
    offsets = zone_offsets(timezone)
    if offsets is None or pa.types.is_date(column.type) or column.type.tz is None:
        return ticks
    return ticks.moved(offsets.at_instants(ticks.floor(1)))


def instants(column: pa.Array, timezone: str) -> Ticks:
    """Return the time since 1970-01-01T00:00Z.

    Args:
        column: timestamp of any unit, aware or naive, or date, which counts as its midnight.
        timezone: the pipeline's zone.
    """
    ticks = _ticks(column)
    offsets = zone_offsets(timezone)
    if offsets is None or (pa.types.is_timestamp(column.type) and column.type.tz is not None):
        return ticks
    return ticks.moved(-offsets.at_wall_clock(ticks.floor(1)))


def _sum(one: Integers, other: Integers) -> Integers:
    """Return the sum, clipped to 64 bits."""
    found = one + other
    wrapped = ((one ^ found) & (other ^ found)) < 0
    clipped = np.where(other < 0, _LIMITS.min, _LIMITS.max)
    return np.where(wrapped, clipped, found)


def _ticks(column: pa.Array) -> Ticks:
    absent = missing(column)
    if pa.types.is_date(column.type):
        days = integers(column.cast(pa.date32()).view(pa.int32()))
        values, per_second = days.astype(np.int64) * SECONDS_PER_DAY, 1
    else:
        values = integers(column.view(pa.int64()))
        per_second = _TICKS_PER_SECOND[column.type.unit]
    return Ticks(values if absent is None else np.where(absent, 0, values), absent, per_second)
