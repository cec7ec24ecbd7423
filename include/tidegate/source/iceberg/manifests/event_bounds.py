"""Give the event-time bounds of a data file, from its manifest entry or its footer (ICE-5.10)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pyarrow as pa
from pyiceberg.types import (
    DateType,
    IntegerType,
    LongType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
)

from tidegate.model.time_bounds import TimeBounds
from tidegate.physical import ParquetRows
from tidegate.physical.protocol import FIELD_ID

if TYPE_CHECKING:
    from pyiceberg.schema import Schema

    from tidegate.physical import PhysicalRows
    from tidegate.source.iceberg.manifests.metrics import Metrics
    from tidegate.source.protocol import EventColumn

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
# Nanoseconds are counted per microsecond, the others the other way round.
_PER_UNIT = {"day": 86_400_000_000, "s": 1_000_000, "ms": 1_000, "us": 1}
_NANOSECONDS = 1_000
_DAY_BYTES = 4
# None: whatever the pipeline says that the numbers count.
_UNITS = {
    DateType: "day",
    TimestampType: "us",
    TimestamptzType: "us",
    TimestampNanoType: "ns",
    TimestamptzNanoType: "ns",
    LongType: None,
    IntegerType: None,
}
_WALL_CLOCK = {DateType, TimestampType, TimestampNanoType}


@dataclass(frozen=True)
class EventBounds:
    """Reads the bounds of one column; times without a zone are wall clock of the pipeline's."""

    field_id: int
    unit: str
    """`day`, `s`, `ms`, `us` or `ns`."""
    zone: ZoneInfo | None
    """None: the column holds moments."""

    @classmethod
    def of(cls, schema: Schema, column: EventColumn) -> EventBounds | None:
        """Find the column; None if there is none, or it holds no times."""
        field = next((field for field in schema.fields if field.name == column.name), None)
        kind = type(field.field_type) if field else None
        if field is None or kind not in _UNITS:
            return None
        zone = ZoneInfo(column.timezone) if kind in _WALL_CLOCK else None
        return cls(field.field_id, _UNITS[kind] or column.unit, zone)

    def read(self, metrics: Metrics) -> TimeBounds | None:
        """Return the bounds of a file; None where its metrics do not say."""
        _, nulls, _, low, high = metrics.of(self.field_id)
        if nulls is not None and nulls >= metrics.record_count:
            return TimeBounds()
        if low is None or high is None:
            return None
        return TimeBounds(self._moment(low, up=False), self._moment(high, up=True))

    def read_footer(self, rows: PhysicalRows) -> TimeBounds | None:
        """Return the bounds of an open file; None where its footer does not say."""
        if not isinstance(rows, ParquetRows):
            # Arrow tells no statistics of ORC stripes, and Avro has none.
            return None
        named = {_field_id(field): field for field in rows.schema}
        field = named.get(self.field_id)
        if field is None:
            return None
        found = rows.raw_bounds(field.name)
        if found is None:
            return None
        low, high = found
        if low is None or high is None:
            return TimeBounds()
        unit = "day" if pa.types.is_date(field.type) else getattr(field.type, "unit", self.unit)
        as_stored = replace(self, unit=unit)
        return TimeBounds(as_stored._at(low, up=False), as_stored._at(high, up=True))

    def _moment(self, bound: bytes, *, up: bool) -> datetime:
        # A date column that was promoted to a timestamp keeps its bounds in days.
        promoted = self.zone is not None and len(bound) == _DAY_BYTES
        stored = replace(self, unit="day") if promoted else self
        return stored._at(int.from_bytes(bound, "little", signed=True), up=up)

    def _at(self, count: int, *, up: bool) -> datetime:
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
            # The first and last days of the calendar have no other zone.
            return moment


def _field_id(field: pa.Field) -> int | None:
    text = (field.metadata or {}).get(FIELD_ID)
    return int(text) if text is not None else None
