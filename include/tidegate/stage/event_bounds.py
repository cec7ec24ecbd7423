"""Measure the event times of rows (PC-W02). Decides nothing about watermarks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.errors import ColumnMissing, SchemaIncompatible
from tidegate.model.message import EventTimes
from tidegate.model.nearness import listed_with_nearest
from tidegate.stage.ticks import instants

if TYPE_CHECKING:
    import numpy as np

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LARGEST = (1 << 63) - 1
_FIRST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND


@dataclass(frozen=True)
class EventClock:
    """The column of the event times, and which of them count.

    Raises:
        ColumnMissing: there is no such column.
        SchemaIncompatible: the column has no times.
    """

    schema: pa.Schema
    column: str
    timezone: str
    counts_until: datetime
    """Aware; later event times are counted as future and move no bound (design §7)."""
    unit: str = "us"
    """The unit of a column of integers, counted since 1970: `s`, `ms`, `us` or `ns`."""

    def __post_init__(self) -> None:
        if self.column not in self.schema.names:
            known = listed_with_nearest(self.column, self.schema.names)
            raise ColumnMissing(source="event_time.column", column=self.column, known=known)
        kind = self.schema.field(self.column).type
        fitting = (pa.types.is_timestamp, pa.types.is_date, pa.types.is_integer)
        if not any(fits(kind) for fits in fitting):
            raise SchemaIncompatible(
                path="event_time.column",
                column=self.column,
                expected="a timestamp, a date or a whole number",
                found=str(kind),
            )

    def measure(self, batch: pa.RecordBatch) -> EventTimes:
        """Return the bounds of the event times that count, and the number of rows without one."""
        column = batch.column(self.column)
        if pa.types.is_integer(column.type):
            if column.type == pa.uint64():
                # Values beyond the signed range are in the far future, too.
                largest = pa.scalar(_LARGEST, pa.uint64())
                column = pc.min_element_wise(column, largest, skip_nulls=False)
            column = column.cast(pa.int64()).cast(pa.timestamp(self.unit, "UTC"))
        ticks = instants(column, self.timezone)
        moments = ticks.microseconds()
        ahead = moments > (self.counts_until - _EPOCH) // _MICROSECOND
        missing = 0
        if ticks.missing is not None:
            missing = int(ticks.missing.sum())
            moments, ahead = moments[~ticks.missing], ahead[~ticks.missing]
        future = int(ahead.sum())
        if future:
            moments = moments[~ahead]
        if not len(moments):
            return EventTimes(None, None, missing, future)
        return EventTimes(_moment(moments.min()), _moment(moments.max()), missing, future)


def _moment(microseconds: np.int64) -> datetime:
    """Return a datetime; values outside its range are clipped to the nearest one inside."""
    return _EPOCH + timedelta(microseconds=min(max(int(microseconds), _FIRST), _LAST))
