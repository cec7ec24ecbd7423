"""The partition values of `day(x)`, `hour(x)` and `month(x)`, and the length of each partition.

The text of a value is defined here for the writer, which makes it, and for the committer, which
reads a time from it. `day(x)` returns `2013-02-05`, `month(x)` returns `2013-02`. `hour(x)` returns
the hour of the day, `05`, beside `day(x)` of the same column, and `2013-02-05T05` alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from tidegate.model.partition import PartitionField, Transform
from tidegate.model.wire import Value

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Interval(Value):
    """Length of a partition in local time: calendar months, or a span."""

    months: int = 0
    span: timedelta = timedelta(0)


INTERVALS = {
    Transform.HOUR: Interval(span=timedelta(hours=1)),
    Transform.DAY: Interval(span=timedelta(days=1)),
    Transform.MONTH: Interval(months=1),
}
"""Return the length of a partition that is made by one of these transforms."""

_FORMATS = {
    Transform.HOUR: "%Y-%m-%dT%H",
    Transform.DAY: "%Y-%m-%d",
    Transform.MONTH: "%Y-%m",
}


def hour_is_of_day(field: PartitionField, fields: Iterable[PartitionField]) -> bool:
    """Return whether an `hour(x)` is only the hour, because there is a `day(x)` beside it."""
    return field.transform is Transform.HOUR and any(
        other.transform is Transform.DAY and other.column == field.column for other in fields
    )


def value_format(field: PartitionField, fields: Iterable[PartitionField]) -> str:
    """Return the `strftime` format of a made value, for wall clock time in the pipeline's zone.

    Raises:
        KeyError: the field is an identity; its values are the column's own.
    """
    return "%H" if hour_is_of_day(field, fields) else _FORMATS[field.transform]


def common_format(values: Iterable[str]) -> str | None:
    """Return the format in which all of some values are written; None if they have none in common.

    Of the formats of whole times: `05` may be an hour or any number.
    """
    told = [*values]
    for known in _FORMATS.values():
        if told and all(is_written(value, known) for value in told):
            return known
    return None


def is_written(value: str, known: str) -> bool:
    """Return whether a value is a time in a `strftime` format, spelled as Tidegate spells it."""
    try:
        return datetime.strptime(value, known).replace(tzinfo=UTC).strftime(known) == value
    except ValueError:
        return False


def time_fields(
    fields: Iterable[PartitionField], event_time: str | None
) -> tuple[PartitionField, ...]:
    """Return the keys that define a partition's time: made from one column by day, hour, month.

    The event time's column takes precedence, because the watermark is measured in it; otherwise the
    column of the first such key is used.
    """
    made = [field for field in fields if field.transform in INTERVALS]
    columns = [field.column for field in made]
    if not columns:
        return ()
    column = event_time if event_time in columns else columns[0]
    return tuple(field for field in made if field.column == column)
