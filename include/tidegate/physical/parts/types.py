"""What the formats have in common about types: which fit, and what stands for them in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.physical.parts.protocol import Unfit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


_PLAIN = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}


def unfit(schema: pa.Schema, refusal: Callable[[pa.DataType], str | None]) -> Iterator[Unfit]:
    """Yield the first type of each column that does not fit, at any depth."""
    for field in schema:
        for kind in _inside(field.type):
            why = refusal(kind)
            if why is not None:
                yield Unfit(field.name, str(kind), why)
                break


def stored(kind: pa.DataType) -> pa.DataType:
    """Return the plain type of the same values: no dictionaries, views or small decimals."""
    if pa.types.is_dictionary(kind):
        return stored(kind.value_type)
    if pa.types.is_nested(kind):
        return _stored_nested(kind)
    if pa.types.is_decimal(kind) and kind.bit_width < pa.decimal128(1).bit_width:
        return pa.decimal128(kind.precision, kind.scale)
    return _PLAIN.get(kind, kind)


def _stored_nested(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(stored(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(stored(kind.key_type), stored(kind.item_type))
    return pa.list_(pa.field("element", stored(kind.value_type))) if is_list(kind) else kind


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """Return the plain types of columns, without metadata."""
    return pa.schema([pa.field(field.name, stored(field.type)) for field in schema])


def is_list(kind: pa.DataType) -> bool:
    """Return whether values are lists, of any length or a fixed one."""
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def is_odd(kind: pa.DataType) -> bool:
    """Return whether only Arrow's own formats and Parquet have a type."""
    return bool(
        pa.types.is_float16(kind)
        or pa.types.is_decimal256(kind)
        or (pa.types.is_decimal(kind) and kind.scale < 0)
        or pa.types.is_duration(kind)
        or pa.types.is_interval(kind)
        or pa.types.is_date64(kind)
        or pa.types.is_union(kind)
        or pa.types.is_run_end_encoded(kind)
        or isinstance(kind, pa.BaseExtensionType)
        or (pa.types.is_time64(kind) and kind.unit == "ns")
    )


def guessed_bytes(schema: pa.Schema, rows: int, file_bytes: int) -> Mapping[str, int]:
    """Guess the uncompressed bytes of columns from the rows of a file and its length.

    Types of a fixed width are known; the others share what a file of this length may hold.
    """
    known = {field.name: _width(field.type) for field in schema}
    open_ended = sum(width is None for width in known.values())
    share = file_bytes * _COMPRESSION // max(1, open_ended)
    return {name: share if width is None else rows * width for name, width in known.items()}


_COMPRESSION = 4
"""The assumed ratio of a file's size in memory to its size."""


def _width(kind: pa.DataType) -> int | None:
    try:
        bits: int = kind.bit_width
    except ValueError:
        return None
    return (bits + 7) // 8


def _inside(kind: pa.DataType) -> Iterator[pa.DataType]:
    """Yield a type and all types in it, a dictionary's values in place of the dictionary."""
    if pa.types.is_dictionary(kind):
        yield from _inside(kind.value_type)
        return
    yield kind
    if pa.types.is_map(kind):
        yield from _inside(kind.key_type)
        yield from _inside(kind.item_type)
    elif pa.types.is_nested(kind):
        for number in range(kind.num_fields):
            yield from _inside(kind.field(number).type)
