"""Convert whole arrays of plain types to the types of an Avro schema. Knows no schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tidegate.physical.arrays import boolean_column, flags

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Build = Callable[[pa.Array], pa.Array]

_DECIMAL_BYTES = 16


def structs(
    array: pa.StructArray, meaning: pa.StructType, builds: Sequence[Build | None]
) -> pa.StructArray:
    """Build the fields of structs.

    Args:
        array: has the fields that have a `build`.
        meaning: the type with all fields.
        builds: one per field of `meaning`; None for a field that is always NULL.
    """
    found = iter(range(array.type.num_fields))
    fields = [
        pa.nulls(len(array), kind.type) if build is None else build(array.field(next(found)))
        for kind, build in zip(meaning, builds, strict=True)
    ]
    if not fields:
        buffers = array.buffers()[:1]
        return pa.Array.from_buffers(meaning, len(array), buffers, array.null_count, array.offset)
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(fields, fields=list(meaning), mask=mask)


def lists(array: pa.Array, meaning: pa.ListType, build: Build) -> pa.ListArray:
    """Build the elements of lists; NULL lists stay NULL, and offsets do not change."""
    narrow = array.cast(pa.list_(array.type.value_field))
    return _nested(narrow, meaning, build(narrow.values))


def maps(array: pa.Array, meaning: pa.MapType, keys: Build, values: Build) -> pa.MapArray:
    """Build maps from lists of pairs."""
    narrow = array.cast(pa.list_(array.type.value_field))
    pairs = narrow.values
    entries = pa.StructArray.from_arrays(
        [keys(pairs.field(0)), values(pairs.field(1))],
        fields=[meaning.key_field, meaning.item_field],
    )
    return _nested(narrow, meaning, entries)


def _nested(lists: pa.ListArray, meaning: pa.DataType, values: pa.Array) -> pa.Array:
    buffers = lists.buffers()[:2]
    return pa.Array.from_buffers(
        meaning, len(lists), buffers, lists.null_count, lists.offset, children=[values]
    )


def decimals(array: pa.Array, meaning: pa.Decimal128Type) -> pa.Decimal128Array:
    """Build decimals from their digits, as big-endian two's complement of any length.

    Raises:
        pa.ArrowInvalid: a value has more digits than the type.
    """
    count = len(array)
    if not count:
        return pa.nulls(0, meaning)
    wide = array.cast(pa.large_binary())
    _, offsets_buffer, bytes_buffer = wide.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int64, count + 1, 8 * wide.offset)
    lengths = np.diff(offsets)
    if lengths.max(initial=0) > _DECIMAL_BYTES:
        problem = f"a decimal of {lengths.max()} bytes, expected {_DECIMAL_BYTES} at most"
        raise pa.ArrowInvalid(problem)
    source = np.zeros(1, np.uint8)
    if bytes_buffer is not None and bytes_buffer.size:
        source = np.frombuffer(bytes_buffer, np.uint8)
    # Place 0 is the lowest byte: Arrow's order. Places beyond a value's bytes have its sign.
    places = np.arange(_DECIMAL_BYTES)
    at = offsets[1:, None] - 1 - places
    inside = places < lengths[:, None]
    first = source[np.minimum(offsets[:-1], source.size - 1)]
    sign = np.where((lengths > 0) & (first >= 0x80), 0xFF, 0).astype(np.uint8)
    digits = np.where(inside, source[np.where(inside, at, 0)], sign[:, None])
    buffers = [_validity(wide), pa.py_buffer(np.ascontiguousarray(digits))]
    values = pa.Array.from_buffers(meaning, count, buffers)
    values.validate(full=True)
    return values


def _validity(array: pa.Array) -> pa.Buffer | None:
    """Return a bitmap from offset zero, for slices as well."""
    if not array.null_count:
        return None
    return boolean_column(flags(array.is_valid())).buffers()[1]
