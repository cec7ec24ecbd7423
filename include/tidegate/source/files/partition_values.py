"""Read partition values from directory names as their declared types (PC-P05, P06, P08)."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidegate.errors import PartitionValueInvalid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tidegate.model.partition import Partition

# ASCII digits only: Python also reads others, so that two directories would be one value.
_INTEGER = re.compile(r"0|-?[1-9]\d*", re.ASCII)
_DECIMAL_TYPE = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_DECIMAL = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d{1,6})?", re.ASCII)
_BOOLEANS = {"true": True, "false": False}

_PLAIN_TYPES: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "int": pa.int32(),
    "long": pa.int64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "boolean": pa.bool_(),
}


def arrow_type(declared: str) -> pa.DataType:
    """Return the Arrow type of a declared key type."""
    match = _DECIMAL_TYPE.fullmatch(declared)
    if match:
        return pa.decimal128(int(match.group(1)), int(match.group(2)))
    return _PLAIN_TYPES[declared]


def parse_values(
    partition: Partition, keys: Mapping[str, str], default_name: str, path: str
) -> dict[str, pa.Scalar]:
    """Return a directory's values as typed scalars, with NULL for the default partition (PC-P08).

    Args:
        partition: as read from the path; may have only some of the first keys.
        keys: declared key → type.
        default_name: the directory value for NULL.
        path: the directory, for errors.

    Raises:
        PartitionValueInvalid: a value is not canonical text of its type.
    """
    return {
        name: parse_value(None if value == default_name else value, keys[name], path)
        for name, value in partition.values
    }


def parse_value(text: str | None, declared: str, path: str) -> pa.Scalar:
    """Return one value as a scalar of its declared type; None is NULL.

    Raises:
        PartitionValueInvalid: it is not canonical text of its type.
    """
    kind = arrow_type(declared)
    if text is None:
        return pa.scalar(None, kind)
    try:
        value = _READERS[declared.partition("(")[0]](text)
        scalar = pa.scalar(value, kind)
    except (ValueError, OverflowError, pa.ArrowInvalid) as refused:
        raise PartitionValueInvalid(path=path, value=text, type=declared) from refused
    return scalar


def _matching(pattern: re.Pattern[str], read: Callable[[str], Any]) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        if not pattern.fullmatch(text):
            msg = f"not of the form {pattern.pattern}"
            raise ValueError(msg)
        return read(text)

    return parse


def _boolean(text: str) -> bool:
    if text not in _BOOLEANS:
        msg = "neither true nor false"
        raise ValueError(msg)
    return _BOOLEANS[text]


_READERS: Mapping[str, Callable[[str], Any]] = {
    "string": str,
    "int": _matching(_INTEGER, int),
    "long": _matching(_INTEGER, int),
    "date": _matching(_DATE, date.fromisoformat),
    "timestamp": _matching(_TIMESTAMP, datetime.fromisoformat),
    "boolean": _boolean,
    "decimal": _matching(_DECIMAL, Decimal),
}
