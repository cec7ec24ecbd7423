"""The values of files that were written before a column's type was changed (HUDI-M17)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.source import promotion

if TYPE_CHECKING:
    from tidegate.source.promotion import Cast

_ZONELESS = pa.timestamp("ns")
"""As ORC has them: no column of a table has this type (HUDI-M17)."""


def cast_to(found: pa.DataType, wanted: pa.DataType, *, zoneless: bool = False) -> Cast | None:
    """Return the cast from one primitive type to another as Hudi makes it, None if it makes none.

    Whole numbers become floats or texts, and a float becomes the double that is written with the
    same digits: 0.1 stays 0.1. Timestamps of ORC, which has no zone for them, are in UTC where
    those of the table are: so Hudi's writer has them. All other types are cast as everywhere.

    Args:
        found: the type in the file.
        wanted: the type in the table.
        zoneless: whether a found timestamp is an INT96, which has no zone of its own.
    """
    if pa.types.is_integer(found) and _takes_numbers(wanted):
        # The nearest float, as Avro reads it.
        return lambda array: array.cast(wanted, safe=False)
    if pa.types.is_float32(found) and pa.types.is_float64(wanted):
        return lambda array: array.cast(pa.string()).cast(wanted)
    if found == _ZONELESS and getattr(wanted, "tz", None) == "UTC":
        return lambda array: array.cast(wanted, safe=False)
    return promotion.cast_to(found, wanted, zoneless=zoneless)


def _takes_numbers(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_string(kind))
