"""Read the event-time bounds of a data file from its manifest entry or footer (ICE-5.10)."""

from __future__ import annotations

from dataclasses import dataclass
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
from tidegate.physical.protocol import FIELD_ID
from tidegate.source.event_bounds import EventUnit

if TYPE_CHECKING:
    from datetime import datetime

    from pyiceberg.schema import Schema

    from tidegate.model.event_column import EventColumn
    from tidegate.physical import PhysicalRows
    from tidegate.source.iceberg.manifests.metrics import Metrics

_DAY_BYTES = 4
# None: the unit in the pipeline file.
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
    """Reads the bounds of one column."""

    field_id: int
    counts: EventUnit

    @classmethod
    def of(cls, schema: Schema, column: EventColumn) -> EventBounds | None:
        """Find the column; None if it does not exist, or has no times."""
        field = next((field for field in schema.fields if field.name == column.name), None)
        kind = type(field.field_type) if field else None
        if field is None or kind not in _UNITS:
            return None
        zone = ZoneInfo(column.timezone) if kind in _WALL_CLOCK else None
        return cls(field.field_id, EventUnit(_UNITS[kind] or column.unit, zone))

    def read(self, metrics: Metrics) -> TimeBounds | None:
        """Return the bounds of a file; None if its metrics do not have them."""
        _, nulls, _, low, high = metrics.of(self.field_id)
        if nulls is not None and nulls >= metrics.record_count:
            return TimeBounds()
        if low is None or high is None:
            return None
        return TimeBounds(self._moment(low, up=False), self._moment(high, up=True))

    def read_footer(self, rows: PhysicalRows) -> TimeBounds | None:
        """Return the bounds of an open file; None if its footer does not have them."""
        named = {_field_id(field): field for field in rows.schema}
        field = named.get(self.field_id)
        if field is None:
            return None
        unit = "day" if pa.types.is_date(field.type) else getattr(field.type, "unit", None)
        counts = self.counts.stored_as(unit) if unit else self.counts
        return counts.read_footer(rows, field.name)

    def _moment(self, bound: bytes, *, up: bool) -> datetime:
        # A date column that was promoted to a timestamp keeps its bounds in days.
        promoted = self.counts.zone is not None and len(bound) == _DAY_BYTES
        counts = self.counts.stored_as("day") if promoted else self.counts
        return counts.at(int.from_bytes(bound, "little", signed=True), up=up)


def _field_id(field: pa.Field) -> int | None:
    text = (field.metadata or {}).get(FIELD_ID)
    return int(text) if text is not None else None
