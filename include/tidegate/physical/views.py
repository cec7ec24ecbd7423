"""Columns without Arrow's views, which are a way to share memory: the same values in plain types.

A Parquet file only records how its writer held a column; most kernels do not support views, and
polars decodes columns of plain types.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_VIEWED = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}


def schema_without_views(schema: pa.Schema) -> pa.Schema:
    """Return a schema of plain types; one without views is returned unchanged."""
    fields = [_plain_field(field) for field in schema]
    return schema if fields == list(schema) else pa.schema(fields, schema.metadata)


def column_without_views(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the values of a column in the plain type that its schema has without views.

    Args:
        column: any array, sliced or not.
        kind: the type of its field in `schema_without_views`.

    Raises:
        pa.ArrowException: the values of large lists do not fit in lists.
    """
    # A cast of list views to lists makes an array with too few offsets (pyarrow 26).
    if column.type == kind:
        return column
    if _is_list_view(column.type):
        values = column_without_views(column.flatten(), kind.value_type)
        return pa.ListArray.from_arrays(_offsets(column), values, type=kind, mask=column.is_null())
    if pa.types.is_struct(kind):
        children = [
            column_without_views(column.field(index), field.type)
            for index, field in enumerate(kind)
        ]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=column.is_null())
    if pa.types.is_map(kind):
        entries = pa.struct([kind.key_field, kind.item_field])
        children = [
            column_without_views(column.keys, kind.key_type),
            column_without_views(column.items, kind.item_type),
        ]
        return with_child(column, kind, pa.StructArray.from_arrays(children, type=entries))
    if pa.types.is_nested(kind):
        return with_child(column, kind, column_without_views(column.values, kind.value_type))
    return column.cast(kind)


def with_child(column: pa.Array, kind: pa.DataType, child: pa.Array) -> pa.Array:
    """Return lists of other values with the same lengths: a child is not sliced with its parent."""
    own = column.buffers()[: 1 if pa.types.is_fixed_size_list(kind) else 2]
    return pa.Array.from_buffers(kind, len(column), own, offset=column.offset, children=[child])


def _offsets(column: pa.Array) -> pa.Int32Array:
    """Return where each list ends if they follow each other without the values of NULL."""
    lengths = pc.list_value_length(column).fill_null(0)
    ends = pc.cumulative_sum(lengths.cast(pa.int64()))
    return pa.concat_arrays([pa.array([0], pa.int64()), ends]).cast(pa.int32())


def _is_list_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind))


def _plain_field(field: pa.Field) -> pa.Field:
    kind = field.type
    if not pa.types.is_nested(kind):
        return field.with_type(_VIEWED[kind]) if kind in _VIEWED else field
    if pa.types.is_struct(kind):
        return field.with_type(pa.struct([_plain_field(child) for child in kind]))
    if pa.types.is_map(kind):
        key, item = _plain_field(kind.key_field), _plain_field(kind.item_field)
        return field.with_type(pa.map_(key, item, kind.keys_sorted))
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if is_list or pa.types.is_fixed_size_list(kind) or _is_list_view(kind):
        return field.with_type(_plain_list(kind))
    return field


def _plain_list(kind: pa.DataType) -> pa.DataType:
    value = _plain_field(kind.value_field)
    if pa.types.is_large_list(kind):
        return pa.large_list(value)
    return pa.list_(value, kind.list_size if pa.types.is_fixed_size_list(kind) else -1)
