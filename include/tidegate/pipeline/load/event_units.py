"""Notice that the event times of a source are numbers of another unit than `event_time.unit`."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tidegate.errors import TidegateError
from tidegate.model.instant import InstantRange
from tidegate.model.other_unit import count_of, other_unit, time_of
from tidegate.model.time_bounds import TimeBounds
from tidegate.plan.bounds import event_column

if TYPE_CHECKING:
    from tidegate.config import PipelineConfig
    from tidegate.model.event_column import EventColumn
    from tidegate.model.plan import Pin
    from tidegate.source.protocol import Source

_TOO_LATE = datetime.max.replace(tzinfo=UTC)


def unit_doubt_of_source(config: PipelineConfig, source: Source, pin: Pin) -> str | None:
    """Return why the unit of the event times may be wrong, by the bounds of a file's metadata.

    Args:
        config: the pipeline.
        source: its source.
        pin: which of it to look at.

    Returns:
        None if the times are likely ones, are no whole numbers, or are not told by the metadata of
        the first files; nothing else is read.
    """
    column = event_column(config)
    if column is None or not _counts(column, source, pin):
        return None
    largest = _largest(column, source, pin)
    return None if largest is None else _doubt(column, largest)


def unit_doubt_of_watermark(
    config: PipelineConfig, source: Source, pin: Pin, largest: datetime | None
) -> str | None:
    """Return why the unit of the event times may be wrong, by the largest one that counted."""
    column = event_column(config)
    if column is None or largest is None:
        return None
    doubt = _doubt(column, count_of(largest, column.unit))
    # Hardly ever is the schema needed: mostly nothing is odd about the time.
    return doubt if doubt is not None and _counts(column, source, pin) else None


def _counts(column: EventColumn, source: Source, pin: Pin) -> bool:
    """Return whether the event times are whole numbers."""
    import pyarrow as pa

    schema = source.reading.schema(pin)
    return column.name in schema.names and pa.types.is_integer(schema.field(column.name).type)


def _doubt(column: EventColumn, largest: int) -> str | None:
    likely = other_unit(largest, column.unit)
    if likely is None:
        return None
    return (
        f"`event_time`: the largest number found in '{column.name}' is {largest}: read in "
        f"{column.unit} it is no likely time, and in {likely} it is "
        f"{time_of(largest, likely):%Y-%m-%d %H:%M:%S}Z"
        f". Set `event_time.unit: {likely}` if that is right"
    )


def _largest(column: EventColumn, source: Source, pin: Pin) -> int | None:
    # In microseconds every number is exact, but those of nanoseconds are beyond the calendar.
    for unit in ("us", "ns"):
        found = _bounds(replace(column, unit=unit), source, pin).largest
        if found is not None and found < _TOO_LATE:
            return count_of(found, unit)
    return None


def _bounds(column: EventColumn, source: Source, pin: Pin) -> TimeBounds:
    if pin.head is None:
        return TimeBounds()
    window = InstantRange(None, pin.head)
    try:
        units = source.slicing.units(pin, window, whole=True, event_time=column, enough=1)
        pieces = units.pieces[:1]
        known = [piece.event_times for piece in pieces]
        if known == [None] and source.hints is not None:
            known = [source.hints.footer_bounds(piece, column) for piece in pieces]
    except TidegateError:
        # It is told by the load, if it needs what cannot be read.
        return TimeBounds()
    return TimeBounds.around([bounds for bounds in known if bounds is not None])
