"""The values of files that were written before a column's type was changed (HUDI-M17)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.physical.arrays import integers
from tidegate.source import promotion

if TYPE_CHECKING:
    import numpy.typing as npt

    from tidegate.source.promotion import Cast

_ZONELESS = pa.timestamp("ns")
"""As ORC has them: no column of a table has this type (HUDI-M17)."""


_WHOLE, _LONG = 2.0**24, 2.0**63
"""Floats between these are whole numbers, of which Java writes the digits that count."""


def cast_to(found: pa.DataType, wanted: pa.DataType, *, zoneless: bool = False) -> Cast | None:
    """Return the cast from one primitive type to another as Hudi makes it, None if it makes none.

    Whole numbers become floats or texts, and a float becomes the double that is written with the
    same digits: 0.1 stays 0.1. All other types are cast as in ORC files.

    Args:
        found: the type in the file.
        wanted: the type in the table.
        zoneless: whether a found timestamp is an INT96, which has no zone of its own.
    """
    if pa.types.is_float32(found) and pa.types.is_float64(wanted):
        return _by_digits
    return cast_of_orc(found, wanted, zoneless=zoneless)


def cast_of_orc(found: pa.DataType, wanted: pa.DataType, *, zoneless: bool = False) -> Cast | None:
    """Return the same for ORC files, whose floats keep their value.

    Timestamps of ORC, which has no zone for them, are in UTC where those of the table are: so
    Hudi's writer has them.
    """
    if pa.types.is_integer(found) and _takes_numbers(wanted):
        # The nearest float, as Avro reads it.
        return lambda array: array.cast(wanted, safe=False)
    if found == _ZONELESS and getattr(wanted, "tz", None) == "UTC":
        return lambda array: array.cast(wanted, safe=False)
    return promotion.cast_to(found, wanted, zoneless=zoneless)


def _takes_numbers(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_string(kind))


def _by_digits(array: pa.Array) -> pa.Array:
    """Return the doubles that Java reads of the texts that it writes for floats.

    These are the shortest that tell a float from others, but up to Java 18, on which Spark 3 runs,
    whole numbers have all digits that count.
    """
    made = integers(array.cast(pa.string()).cast(pa.float64())).copy()
    floats = integers(array.cast(pa.float64()))
    size = np.abs(floats)
    is_whole = (size >= _WHOLE) & (size < _LONG)
    made[is_whole] = np.copysign(_digits_that_count(size[is_whole]), floats[is_whole])
    column = pa.Array.from_buffers(pa.float64(), len(made), [None, pa.py_buffer(made)])
    return pc.if_else(array.is_valid(), column, pa.nulls(1, pa.float64())[0])


def _digits_that_count(sizes: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Round whole numbers to the digits that their 24 bits decide."""
    exponents = np.frexp(sizes)[1] - 26
    units = 10 ** (np.maximum(exponents, 0) * math.log10(2)).astype(np.int64)
    numbers = sizes.astype(np.int64)
    rounded: npt.NDArray[np.int64] = (numbers + units // 2) // units * units
    return rounded.astype(np.float64)
