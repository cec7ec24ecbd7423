"""Choose the columns that a pipeline reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.errors import ColumnMissing
from tidegate.model.nearness import listed_with_nearest

if TYPE_CHECKING:
    from collections.abc import Sequence


def column_names(
    known: Sequence[str], columns: Sequence[str] | None, extra: Sequence[str], source: str
) -> list[str]:
    """Return the names of the columns to read: the chosen ones in order, then the extra ones.

    Args:
        known: the columns of the table.
        columns: `read.columns`; None: all.
        extra: columns that a filter needs besides.
        source: the table, for errors.

    Raises:
        ColumnMissing: the table has no column of that name.
    """
    if columns is None:
        return list(known)
    for name in (*columns, *extra):
        if name not in known:
            raise ColumnMissing(source=source, column=name, known=listed_with_nearest(name, known))
    return list(dict.fromkeys((*columns, *extra)))


def select_columns(
    schema: pa.Schema, columns: Sequence[str] | None, extra: Sequence[str], source: str
) -> pa.Schema:
    """Return some columns of a schema; see `column_names`."""
    return pa.schema(
        [schema.field(name) for name in column_names(schema.names, columns, extra, source)]
    )
