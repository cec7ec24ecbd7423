"""Check that the columns that identify rows of an upsert exist, compare, and are never NULL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.errors import ColumnMissing, KeyMissing, KeyUnusable
from tidegate.model.nearness import listed_with_nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

_WHERE = "target.keys"


def check_keys(schema: pa.Schema, keys: Sequence[str]) -> None:
    """Check the types of columns that identify rows.

    Raises:
        ColumnMissing: there is no such column.
        KeyUnusable: its values cannot be told apart reliably, or not at all.
    """
    for key in keys:
        if key not in schema.names:
            known = listed_with_nearest(key, schema.names)
            raise ColumnMissing(source=_WHERE, column=key, known=known)
        kind = schema.field(key).type
        # polars, which finds the last change of a key, has no decimals of 256 bits.
        is_told = not (pa.types.is_floating(kind) or pa.types.is_decimal256(kind))
        if not is_told or pa.types.is_nested(kind) or pa.types.is_null(kind):
            raise KeyUnusable(column=key, found=str(kind))


def check_no_null(rows: pa.RecordBatch, keys: Sequence[str]) -> None:
    """Check that every row has a value in each column that identifies it.

    Raises:
        KeyMissing: a row has none; two of them would be taken for the same row.
    """
    for key in keys:
        absent = rows.column(key).null_count
        if absent:
            raise KeyMissing(column=key, rows=absent)
