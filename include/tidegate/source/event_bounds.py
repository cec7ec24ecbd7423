"""Convert the smallest and largest stored numbers of an event-time column to times (ICE-5.10)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pyarrow as pa

from tidegate.model.time_bounds import TimeBounds
from tidegate.physical import ParquetRows

if TYPE_CHECKING:
    from tidegate.model.event_column import EventColumn
    from tidegate.physical import PhysicalRows

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
# Nanoseconds per microsecond; for the other units, microseconds per unit.
_PER_UNIT = {"day": 86_400_000_000, "s": 1_000_000, "ms": 1_000, "us": 1}
_NANOSECONDS = 1_000


@dataclass(frozen=True)
class EventUnit:
    """The unit of a column's numbers; times without a zone are in the pipeline's zone."""

    unit: str
    """`day`, `s`, `ms`, `us` or `ns`."""
    zone: ZoneInfo | None
    """None: the column has instants."""

    @classmethod
    def of(cls, kind: pa.DataType, column: EventColumn) -> EventUnit | None:
        """Return the unit of a type; None if it has no times."""
        if pa.types.is_date32(kind):
            return cls("day", ZoneInfo(column.timezone))
        if pa.types.is_timestamp(kind):
            return cls(kind.unit, None if kind.tz else ZoneInfo(column.timezone))
        return cls(column.unit, None) if pa.types.is_integer(kind) else None

    def stored_as(self, unit: str) -> EventUnit:
        """Return the same for numbers with another unit."""
        return replace(self, unit=unit)

    def between(self, low: int, high: int) -> TimeBounds:
        """Return two numbers as bounds, wider by less than a microsecond."""
        return TimeBounds(self.at(low, up=False), self.at(high, up=True))

    def read_footer(self, rows: PhysicalRows, column: str) -> TimeBounds | None:
        """Return the bounds of a column of an open file; None if its footer does not have them."""
        if not isinstance(rows, ParquetRows):
            # Arrow does not expose statistics of ORC stripes, and Avro has none.
            return None
        return self.between_raw(rows.raw_bounds(column))

    def between_raw(self, found: tuple[int | None, int | None] | None) -> TimeBounds | None:
        """Return the bounds that a footer's numbers are; None where it does not say them."""
        if found is None:
            return None
        low, high = found
        return TimeBounds() if low is None or high is None else self.between(low, high)

    def at(self, count: int, *, up: bool) -> datetime:
        """Return the time of a number, rounded up or down to a microsecond."""
        if self.unit == "ns":
            microseconds = -(-count // _NANOSECONDS) if up else count // _NANOSECONDS
        else:
            microseconds = count * _PER_UNIT[self.unit]
        if not _FIRST <= microseconds <= _LAST:
            microseconds = _FIRST if microseconds < 0 else _LAST
        moment = _EPOCH + timedelta(0, 0, microseconds)
        if self.zone is None:
            return moment
        try:
            return moment.replace(tzinfo=self.zone).astimezone(UTC)
        except OverflowError:
            # The first and last days of the calendar cannot be converted to another zone.
            return moment
