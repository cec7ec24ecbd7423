"""Move columns between Arrow and NumPy without a copy.

`pa.array`, `pa.scalar` and `to_numpy` import pandas when first called, which costs a worker
as much as staging a small file; nothing on the data path calls them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.intp]

FEW_CODES = 1 << 16
"""Below this many codes, arrays indexed by code are cheaper than sorting."""


def has_type(kind: pa.DataType, is_one: Callable[[pa.DataType], bool]) -> bool:
    """Return whether a type, or one at any depth in it, is of some kind."""
    if is_one(kind):
        return True
    return any(has_type(kind.field(index).type, is_one) for index in range(kind.num_fields))


def integers(column: pa.Array) -> npt.NDArray[Any]:
    """Return a view of a column of integers.

    Returns:
        As many integers of the same width; values where the column is NULL are undefined.
    """
    kind = np.dtype(str(column.type))
    if not len(column):
        return np.zeros(0, dtype=kind)
    values = np.frombuffer(column.buffers()[1], dtype=kind)
    return values[column.offset : column.offset + len(column)]


def missing(column: pa.Array) -> Flags | None:
    """Return where a column is NULL; None if there are no NULLs."""
    return flags(column.is_null()) if column.null_count else None


def flags(column: pa.BooleanArray) -> Flags:
    """Unpack booleans without NULLs."""
    return integers(column.cast(pa.uint8())).view(np.bool_)


def whole(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays([pa.nulls(0, column.type), *column.chunks])


def where_true(column: pa.BooleanArray) -> Flags:
    """Unpack booleans; NULL counts as false."""
    return flags(column.fill_null(boolean_column(np.zeros(1, np.bool_))[0]))


def boolean_column(values: Flags) -> pa.BooleanArray:
    """Pack booleans."""
    packed = pa.py_buffer(np.packbits(values, bitorder="little"))
    return pa.BooleanArray.from_buffers(pa.bool_(), len(values), [None, packed])


def integer_column(values: Integers) -> pa.Int64Array:
    """Wrap integers as an Arrow array."""
    return pa.Int64Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)])


def dense_codes(codes: Codes, size: int) -> tuple[Codes, list[int]]:
    """Renumber codes without gaps.

    Args:
        codes: int[n], each at least 0 and less than `size`.
        size: the number of possible codes.

    Returns:
        The new codes, and the old code of each.
    """
    if size > FEW_CODES:
        old, dense = np.unique(codes, return_inverse=True)
        return dense.astype(np.intp, copy=False), old.tolist()
    present = np.bincount(codes, minlength=size) > 0
    if present.all():
        return codes, list(range(size))
    return (np.cumsum(present) - 1)[codes], np.flatnonzero(present).tolist()


def distinct(values: Integers) -> tuple[Codes, list[int]]:
    """Number the distinct values of a column, the smallest first.

    Returns:
        The number of each row's value, and the values.
    """
    if not len(values):
        return np.zeros(0, dtype=np.intp), []
    low = int(values.min())
    size = int(values.max()) - low + 1
    if size > FEW_CODES:
        old, codes = np.unique(values, return_inverse=True)
        return codes.astype(np.intp, copy=False), old.tolist()
    codes, offsets = dense_codes((values - low).astype(np.intp, copy=False), size)
    return codes, [low + offset for offset in offsets]


def text_column(values: Sequence[str]) -> pa.StringArray:
    """Return a column of texts."""
    encoded = [value.encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    joined = pa.py_buffer(b"".join(encoded))
    return pa.StringArray.from_buffers(len(encoded), pa.py_buffer(ends), joined)


def text_scalar(text: str) -> pa.StringScalar:
    """Return a text to compare a column with."""
    return text_column([text])[0]


def zero_of(kind: pa.DataType) -> pa.Scalar:
    """Return the 0 of a type of integers, floats or decimals: all of its bytes are 0."""
    zeros = pa.py_buffer(bytes(kind.bit_width // 8))
    return pa.Array.from_buffers(kind, 1, [None, zeros])[0]


def no_rows(schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch of a schema without rows."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, item.type) for item in schema], schema=schema)


def repeated_text(text: str, rows: int) -> pa.StringArray:
    """Return a column with the same text in every row."""
    encoded = text.encode()
    offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(len(encoded))
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(encoded * rows))
