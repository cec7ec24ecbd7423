"""Find the partition of every row of upstream counts: values of any type → partition values."""

from __future__ import annotations

import reprlib
from collections import defaultdict
from collections.abc import Collection
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from tidegate.errors import CountsUnreadable
from tidegate.model.partition import Transform
from tidegate.model.partition_value import hour_is_of_day, value_format

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tidegate.config import PipelineConfig
    from tidegate.model.partition import PartitionField
    from tidegate.model.upstream import Values

_MOST = 2**63 - 1
"""Rows that a ledger can count."""
_WHOLE_TIMES = {Transform.HOUR: "{}", Transform.DAY: "{}T00", Transform.MONTH: "{}-01T00"}
"""What makes a made value a time that can be read."""
_WHOLE_TIME_OF_HOUR = "2000-01-01T{}"
_EXAMPLE = datetime(2026, 2, 1, 5)  # noqa: DTZ001 (partition values are local times)


def counts_by_partition(
    config: PipelineConfig, found: Mapping[str, Sequence[Any]], place: str
) -> Mapping[Values, int]:
    """Return the rows of every partition; several rows for one are added.

    Args:
        config: the pipeline, whose partition keys are columns of the counts.
        found: the counts, column by column: the keys, and one other.
        place: where they were read, for messages.

    Raises:
        CountsUnreadable: a column is missing or too many, a key is no single value or not what a
            partition is called, or a count is no whole number.
    """
    fields = config.target.partition_by
    keys = [_column(found, field.name, place) for field in fields]
    names = {name for name, _ in keys}
    others = [name for name in found if name not in names]
    if len(others) != 1:
        wanted = ", ".join([*(field.name for field in fields), "and one with the rows"])
        problem = f"expected the columns {wanted}; found {', '.join(found) or 'none'}"
        raise CountsUnreadable(place=place, problem=problem)
    zone = ZoneInfo(config.timezone)
    written = []
    for field, (name, values) in zip(fields, keys, strict=True):
        write = _writer(field, fields, zone, config.target.default_partition_name)
        wanted = f"values of a partition in '{name}'{_such_as(field, fields)}"
        written.append(_written(values, write, wanted, place))
    counts: defaultdict[Values, int] = defaultdict(int)
    unknown: set[Values] = set()
    partitions = zip(*written, strict=True) if written else ((),) * len(found[others[0]])
    for partition, count in zip(partitions, found[others[0]], strict=True):
        if count is None or count == "":
            unknown.add(partition)
        else:
            counts[partition] += _whole(count, others[0], place)
    # A part that is not known yet makes the sum unknown.
    return {partition: rows for partition, rows in counts.items() if partition not in unknown}


def _column(found: Mapping[str, Sequence[Any]], name: str, place: str) -> tuple[str, Sequence[Any]]:
    """Return the column of a key; databases change the case of names."""
    exact = [key for key in found if key == name]
    like = exact or [key for key in found if key.lower() == name.lower()]
    if len(like) != 1:
        problem = f"expected a column '{name}' for the partition key; found {', '.join(found)}"
        raise CountsUnreadable(place=place, problem=problem)
    return like[0], found[like[0]]


def _such_as(field: PartitionField, fields: Sequence[PartitionField]) -> str:
    if field.transform not in _WHOLE_TIMES:
        return ""
    return f", such as '{_EXAMPLE.strftime(value_format(field, fields))}'"


def _written(
    values: Sequence[Any], write: Callable[[Any], str | None], wanted: str, place: str
) -> list[str | None]:
    # Counts have a few values many times: each hour, each region. 1 and true are equal.
    known: dict[tuple[type, Any], str | None] = {}
    written = []
    for row, item in enumerate(values, start=1):
        if isinstance(item, Collection) and not isinstance(item, str | bytes):
            problem = f"expected single {wanted}; found {reprlib.repr(item)} in row {row}"
            raise CountsUnreadable(place=place, problem=problem)
        key = (type(item), item)
        if key not in known:
            try:
                known[key] = write(item)
            except (ValueError, OverflowError) as refused:
                problem = f"expected {wanted}; found {reprlib.repr(item)} in row {row}"
                raise CountsUnreadable(place=place, problem=problem) from refused
        written.append(known[key])
    return written


def _writer(
    field: PartitionField,
    fields: Sequence[PartitionField],
    zone: ZoneInfo,
    default_name: str,
) -> Callable[[Any], str | None]:
    is_made = field.transform in _WHOLE_TIMES
    form = value_format(field, fields) if is_made else None
    is_hour = is_made and hour_is_of_day(field, fields)

    def write(value: Any) -> str | None:
        if value is None or value in {"", default_name}:
            return None
        if form is not None and isinstance(value, date):
            return _local(value, zone).strftime(form)
        text = f"{int(value):02d}" if is_hour and str(value).isdecimal() else _text(value, zone)
        if is_made:
            whole = _WHOLE_TIME_OF_HOUR if is_hour else _WHOLE_TIMES[field.transform]
            _check_spelling(whole.format(text))
        return text

    return write


def _check_spelling(time: str) -> None:
    """Refuse a local time that no partition is called, because it is not written like one.

    Raises:
        ValueError: it is another spelling, or no time.
    """
    read = datetime.fromisoformat(time).replace(tzinfo=None)
    if read.isoformat(timespec="hours") != time:
        raise ValueError(time)


def _local(value: date, zone: ZoneInfo) -> date:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(zone)
    return value


def _text(value: Any, zone: ZoneInfo) -> str:
    """Return the one spelling of a value (PC-P06)."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return _local(value, zone).replace(tzinfo=None).isoformat()  # type: ignore[call-arg]
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return f"{value:f}"
    return str(value)


def _whole(count: Any, name: str, place: str) -> int:
    try:
        number = Decimal(str(count))
    except ArithmeticError:
        number = Decimal(-1)
    # The size comes first: a whole number of a billion digits is not worked out.
    is_count = number.is_finite() and 0 <= number <= _MOST and number == number.to_integral_value()
    if not is_count:
        problem = f"expected whole numbers of rows in '{name}'; found {reprlib.repr(count)}"
        raise CountsUnreadable(place=place, problem=problem)
    return int(number)
