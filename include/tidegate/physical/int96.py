"""Find the timestamps of a Parquet file that have neither a zone nor a unit of their own: INT96.

They are read as microseconds, which hold every year, as Spark and Iceberg read them: nanoseconds
in 64 bits end in 2262, and Arrow counts on past their end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow.parquet as pq

UNIT = "us"
_ZONELESS = b"tidegate:int96"
"""Metadata key of such a column, at every depth: what writers mean are moments of UTC or clocks."""


def is_zoneless(field: pa.Field) -> bool:
    """Return whether a column was marked."""
    return _ZONELESS in (field.metadata or {})


def with_marks(schema: pa.Schema, parquet: pq.ParquetSchema) -> pa.Schema:
    """Mark the INT96 columns of a file's schema.

    Args:
        schema: as Arrow reads the file.
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
