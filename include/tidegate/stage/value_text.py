"""Write partition values as canonical text, one spelling for each value, which can be read back."""

from __future__ import annotations

import functools
import json
import re
from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.errors import PartitionFieldInvalid, PartitionValueReserved

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.model.partition import PartitionField

Texts = list[str | None]
"""None is the default partition (PC-P08)."""

LONGEST_NAME = 255
"""The limit for directory names on Linux file systems, in bytes."""
_SHOWN = 32

_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")


def identity_writer(
    field: PartitionField, kind: pa.DataType, *, timezone: str
) -> Callable[[pa.Array], Texts]:
    """Return the function that writes the values of one column (PC-P06).

    Args:
        field: the partition key, for messages.
        kind: type of the values; the function takes arrays of it.
        timezone: the pipeline's zone.

    Raises:
        PartitionFieldInvalid: values of this type cannot name a directory and be read back.
    """
    if _is_text(kind):
        return functools.partial(_plain_texts, field)
    if pa.types.is_timestamp(kind):
        if kind.tz is not None and timezone != "UTC":
            problem = (
                f"a time of type {kind} has no unique wall clock in {timezone}; "
                "use hour(), day() or month() of the column"
            )
            raise PartitionFieldInvalid(key=field.name, column=field.column, problem=problem)
        return _timestamp_texts
    if pa.types.is_decimal(kind):
        return lambda values: [None if v is None else format(v, "f") for v in values.to_pylist()]
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_date(kind):
        return lambda values: _plain(values).cast(pa.string()).to_pylist()
    problem = (
        f"values of type {kind} cannot name a directory; "
        "use text, integers, booleans, decimals, dates or timestamps"
    )
    raise PartitionFieldInvalid(key=field.name, column=field.column, problem=problem)


def reserved(field: PartitionField, kind: pa.DataType, text: str) -> PartitionValueReserved:
    """Return the error for a value with the text of NULL, with a row rule that rejects such rows.

    Args:
        field: the partition key.
        kind: type of its column.
        text: the text of the value, which is the name of the default partition.
    """
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    column = _sql_name(field.column)
    literal = text.replace("'", "''")
    compared = column if _is_text(kind) else f"cast({column} as varchar)"
    where = f"{column} is null or {compared} <> '{literal}'"
    # Quoted as JSON, which is also valid YAML.
    rule = json.dumps(where, ensure_ascii=False)
    return PartitionValueReserved(column=field.column, value=text, rule=rule)


def too_long(field: PartitionField, text: str, size: int) -> PartitionFieldInvalid:
    """Return the error for a value whose directory name is too long for file systems.

    Args:
        field: the partition key.
        text: the text of the value.
        size: bytes of the name.
    """
    column = _sql_name(field.column)
    problem = (
        f"the directory of the value '{text[:_SHOWN]}…' has a name of {size} bytes, and file "
        f"systems take {LONGEST_NAME}; put such rows aside with a row rule, such as {{name: "
        f'short, where: "{column} is null or octet_length({column}) < 64"}}'
    )
    return PartitionFieldInvalid(key=field.name, column=field.column, problem=problem)


def _plain_texts(field: PartitionField, values: pa.Array) -> Texts:
    try:
        return [text or None for text in values.to_pylist()]
    except UnicodeDecodeError as broken:
        problem = f"the text {broken.object!r} is not UTF-8; correct it in the source"
        raise PartitionFieldInvalid(
            key=field.name, column=field.column, problem=problem
        ) from broken


def _sql_name(column: str) -> str:
    if _PLAIN_NAME.fullmatch(column):
        return column
    doubled = column.replace('"', '""')
    return f'"{doubled}"'


def _plain(values: pa.Array) -> pa.Array:
    return values.cast(pa.date32()) if pa.types.is_date(values.type) else values


def _timestamp_texts(values: pa.TimestampArray) -> Texts:
    """Return `2020-12-01T11:00:00[.fraction]`, with a fraction without trailing zeros."""
    texts = values.cast(pa.timestamp(values.type.unit)).cast(pa.string()).to_pylist()
    return [None if text is None else _timestamp_text(text) for text in texts]


def _timestamp_text(arrow_text: str) -> str:
    moment, point, fraction = arrow_text.replace(" ", "T").partition(".")
    digits = fraction.rstrip("0")
    return f"{moment}{point}{digits}" if digits else moment


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )
