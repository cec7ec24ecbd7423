"""Encode Arrow columns as Avro rows, a column at a time.

A column becomes the bytes of its values, one after the other, and their lengths; rows are made by
weaving the bytes of several columns. polars writes neither decimals nor times with a zone nor maps,
and fastavro takes a row at a time in Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.physical.arrays import boolean_column, flags, integers
from tidegate.physical.parts.avro_schema import decimal_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Bytes = npt.NDArray[np.uint8]
Lengths = npt.NDArray[np.int64]

_DECIMAL_BYTES = 16
_VARINT_BITS = 7
_VARINT_BYTES = 10
_NULL, _VALUE = 0, 2
"""The numbers of the two sides of a union, as they are encoded."""


@dataclass(frozen=True)
class Encoded:
    """The encoded values of a column."""

    lengths: Lengths
    """Bytes of each value."""
    content: Bytes
    """All values, one after the other."""

    @classmethod
    def fixed(cls, matrix: Bytes) -> Encoded:
        """Return values of one width, a row of the matrix each."""
        rows, width = matrix.shape
        return cls(np.full(rows, width, np.int64), matrix.reshape(-1))

    def grouped(self, counts: Lengths) -> Encoded:
        """Return values that each consist of several adjacent ones."""
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.lengths)])
        bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        return Encoded(np.diff(ends[bounds]), self.content)


def encode_rows(rows: pa.RecordBatch) -> bytes:
    """Encode rows whose columns have `stored` types, by `avro_schema`."""
    columns = [_nullable(column) for column in rows.columns]
    return woven(rows.num_rows, columns).content.tobytes()


def woven(rows: int, columns: Sequence[Encoded]) -> Encoded:
    """Put the values of several columns into rows."""
    lengths = np.zeros(rows, np.int64)
    for column in columns:
        lengths += column.lengths
    place = np.cumsum(lengths) - lengths
    content = np.empty(int(lengths.sum()), np.uint8)
    for column in columns:
        _put(content, place, column)
        place = place + column.lengths
    return Encoded(lengths, content)


def varints(values: npt.NDArray[np.int64]) -> Encoded:
    """Encode whole numbers: zigzag, seven bits per byte, the lowest first."""
    zigzag = ((values << 1) ^ (values >> 63)).view(np.uint64)
    lengths = np.ones(len(values), np.int64)
    for number in range(1, _VARINT_BYTES):
        lengths += zigzag >= np.uint64(1 << (_VARINT_BITS * number))
    width = int(lengths.max(initial=1))
    shifts = np.arange(width, dtype=np.uint64) * np.uint64(_VARINT_BITS)
    matrix = ((zigzag[:, None] >> shifts) & np.uint64(0x7F)).astype(np.uint8)
    place = np.arange(width)
    matrix[place < lengths[:, None] - 1] |= 0x80
    return Encoded(lengths, matrix[place < lengths[:, None]])


def _put(content: Bytes, place: Lengths, column: Encoded) -> None:
    """Copy values to their places."""
    if not len(column.content):
        return
    first = int(column.lengths[0])
    if (column.lengths == first).all():
        content[place[:, None] + np.arange(first)] = column.content.reshape(-1, first)
        return
    starts = np.cumsum(column.lengths) - column.lengths
    moved = np.repeat(place - starts, column.lengths)
    content[moved + np.arange(len(moved))] = column.content


def _nullable(column: pa.Array) -> Encoded:
    """Encode a union of nothing and a value; the type null has no bytes at all."""
    rows = len(column)
    if pa.types.is_null(column.type):
        return Encoded(np.zeros(rows, np.int64), np.zeros(0, np.uint8))
    valid = flags(column.is_valid())
    branches = np.where(valid, _VALUE, _NULL).astype(np.uint8)[:, None]
    present = column if valid.all() else column.filter(boolean_column(valid))
    values = _values(present)
    lengths = np.zeros(rows, np.int64)
    lengths[valid] = values.lengths
    return woven(rows, [Encoded.fixed(branches), Encoded(lengths, values.content)])


def _values(column: pa.Array) -> Encoded:
    """Encode values of which none is missing."""
    encode = next((encode for fits, encode in _ENCODERS if fits(column.type)), None)
    return encode(column) if encode is not None else varints(_numbers(column))


def _structs(column: pa.Array) -> Encoded:
    fields = [_nullable(column.field(number)) for number in range(column.type.num_fields)]
    return woven(len(column), fields)


def _flags(column: pa.Array) -> Encoded:
    return Encoded.fixed(flags(column).astype(np.uint8)[:, None])


def _floats(column: pa.Array) -> Encoded:
    return Encoded.fixed(_raw(column, column.type.bit_width // 8))


def _decimals(column: pa.Array) -> Encoded:
    """Encode decimals, the highest byte first, in no more bytes than the largest needs."""
    size = decimal_bytes(column.type.precision)
    return Encoded.fixed(np.ascontiguousarray(_raw(column, _DECIMAL_BYTES)[:, size - 1 :: -1]))


def _fixed_bytes(column: pa.Array) -> Encoded:
    return Encoded.fixed(_raw(column, column.type.byte_width))


def _repeated(column: pa.Array) -> Encoded:
    """Encode lists and maps: a block of all items, if there are any, and an empty block."""
    bounds = integers(column.offsets).astype(np.int64)
    counts = np.diff(bounds)
    first, items = int(bounds[0]), int(counts.sum())
    if pa.types.is_map(column.type):
        keys, values = (part.slice(first, items) for part in (column.keys, column.items))
        entries = woven(items, [_texts(keys), _nullable(values)])
    else:
        entries = _nullable(column.values.slice(first, items))
    some = counts > 0
    heads = varints(counts[some])
    lengths = np.zeros(len(column), np.int64)
    lengths[some] = heads.lengths
    ends = Encoded.fixed(np.zeros((len(column), 1), np.uint8))
    head = Encoded(lengths, heads.content)
    return woven(len(column), [head, entries.grouped(counts), ends])


def _texts(column: pa.Array) -> Encoded:
    """Encode texts or bytes, each after its length."""
    wide = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
    kind: Any = np.int64 if wide else np.int32
    _validity, offsets, content = column.buffers()
    if not len(column) or content is None:
        counts, plain = np.zeros(len(column), np.int64), np.zeros(0, np.uint8)
    else:
        bounds = np.frombuffer(offsets, kind)[column.offset : column.offset + len(column) + 1]
        counts = np.diff(bounds).astype(np.int64)
        plain = np.frombuffer(content, np.uint8)[int(bounds[0]) : int(bounds[-1])]
    return woven(len(column), [varints(counts), Encoded(counts, plain)])


def _numbers(column: pa.Array) -> npt.NDArray[np.int64]:
    """Return whole numbers, dates and times as Avro counts them: in no unit above milliseconds."""
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.unit == "s":
        column = column.cast(pa.timestamp("ms", kind.tz))
    elif pa.types.is_time32(kind) and kind.unit == "s":
        column = column.cast(pa.time32("ms"))
    if pa.types.is_temporal(kind):
        column = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
    return integers(column).astype(np.int64)


def _raw(column: pa.Array, width: int) -> Bytes:
    """Return the bytes of values of one width, as Arrow stores them."""
    if not len(column):
        return np.zeros((0, width), np.uint8)
    start = column.offset * width
    stored = np.frombuffer(column.buffers()[1], np.uint8)
    return stored[start : start + len(column) * width].reshape(-1, width)


def _is_text_or_bytes(kind: pa.DataType) -> bool:
    return kind in {pa.string(), pa.large_string(), pa.binary(), pa.large_binary()}


_ENCODERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], Encoded]], ...] = (
    (pa.types.is_struct, _structs),
    (pa.types.is_map, _repeated),
    (pa.types.is_list, _repeated),
    (pa.types.is_boolean, _flags),
    (pa.types.is_floating, _floats),
    (pa.types.is_decimal, _decimals),
    (pa.types.is_fixed_size_binary, _fixed_bytes),
    (_is_text_or_bytes, _texts),
)
"""What encodes a type; whatever else there is, counts something."""
