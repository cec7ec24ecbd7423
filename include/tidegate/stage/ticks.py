"""Read columns of times as integers: wall clock in a zone, or microseconds since 1970 in UTC.

Aware times are converted to the pipeline's zone, naive ones are wall clock in it (design §7).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

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
    values, missing = _integers(column.cast(pa.date32()).view(pa.int32()))
    return Ticks(values.astype(np.int64) * SECONDS_PER_DAY, missing, 1)


def _timestamps(column: pa.TimestampArray) -> Ticks:
    values, missing = _integers(column.view(pa.int64()))
    return Ticks(values, missing, _TICKS_PER_SECOND[column.type.unit])


def _integers(column: pa.Array) -> tuple[Integers, Flags | None]:
    if not column.null_count:
        return as_numpy(column), None
    return as_numpy(column.fill_null(0)), flags(column.is_null())


def as_numpy(column: pa.Array) -> npt.NDArray[Any]:
    """View an Arrow array of numbers without NULL; `to_numpy` would import pandas (a second)."""
    return np.from_dlpack(column)


def flags(column: pa.BooleanArray) -> Flags:
    """Unpack Arrow booleans without NULL."""
    return as_numpy(column.cast(pa.uint8())).view(np.bool_)


def _is_utc(timezone: str) -> bool:
    return timezone in _UTC_NAMES
