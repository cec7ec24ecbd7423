"""Find the timestamps of a Parquet file that have neither a zone nor a unit: INT96.

They are read as microseconds, which can represent every year, as in Spark and Iceberg: 64-bit
nanoseconds end in 2262, and Arrow's values wrap around after that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow.parquet as pq

UNIT = "us"
_ZONELESS = b"tidegate:int96"
"""Metadata key of such a column, at every depth: writers mean either UTC or wall clock time."""


def is_zoneless(field: pa.Field) -> bool:
    """Return whether a column is marked as INT96."""
    return _ZONELESS in (field.metadata or {})


def with_marks(schema: pa.Schema, parquet: pq.ParquetSchema) -> pa.Schema:
    """Mark the INT96 columns of a file's schema.

    Args:
        schema: the file's schema as Arrow reads it.
        parquet: its leaves, in the same order.
    """
    leaves = [parquet.column(index).physical_type == "INT96" for index in range(len(parquet.names))]
    if not any(leaves):
        return schema
    found = iter(leaves)
    return pa.schema([_marked(field, found) for field in schema], schema.metadata)


def _marked(field: pa.Field, leaves: Iterator[bool]) -> pa.Field:
    kind = field.type
    if pa.types.is_struct(kind):
        return field.with_type(pa.struct([_marked(child, leaves) for child in kind]))
    if pa.types.is_map(kind):
        key = _marked(kind.key_field, leaves)
        return field.with_type(pa.map_(key, _marked(kind.item_field, leaves)))
    if pa.types.is_fixed_size_list(kind):
        return field.with_type(pa.list_(_marked(kind.value_field, leaves), kind.list_size))
    if pa.types.is_list(kind):
        return field.with_type(pa.list_(_marked(kind.value_field, leaves)))
    if pa.types.is_large_list(kind):
        return field.with_type(pa.large_list(_marked(kind.value_field, leaves)))
    return (
        field.with_metadata({**(field.metadata or {}), _ZONELESS: b"1"}) if next(leaves) else field
    )
