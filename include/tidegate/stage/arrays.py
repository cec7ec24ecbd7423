"""Move columns between Arrow and NumPy without a copy.

`pa.array`, `pa.scalar` and `to_numpy` import pandas when they are first called, which costs a worker
as much as staging a small file; nothing on the data path calls them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def integers(column: pa.Array) -> npt.NDArray[Any]:
    """View a column of integers.

    Returns:
        As many integers of the same width; what stands where the column is NULL is not defined.
    """
    kind = np.dtype(str(column.type))
    if not len(column):
        return np.zeros(0, dtype=kind)
    values = np.frombuffer(column.buffers()[1], dtype=kind)
    return values[column.offset : column.offset + len(column)]


def missing(column: pa.Array) -> Flags | None:
    """Say where a column is NULL; None if it nowhere is."""
    return flags(column.is_null()) if column.null_count else None


def flags(column: pa.BooleanArray) -> Flags:
    """Unpack booleans without NULL."""
    return integers(column.cast(pa.uint8())).view(np.bool_)


def boolean_column(values: Flags) -> pa.BooleanArray:
    """Pack booleans."""
    packed = pa.py_buffer(np.packbits(values, bitorder="little"))
    return pa.BooleanArray.from_buffers(pa.bool_(), len(values), [None, packed])


def integer_column(values: Integers) -> pa.Int64Array:
    """Hand integers to Arrow."""
    return pa.Int64Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)])


def repeated_text(text: str, rows: int) -> pa.StringArray:
    """Make a column that has one text in every row."""
    encoded = text.encode()
    offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(len(encoded))
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(encoded * rows))
