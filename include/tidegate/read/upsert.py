"""Reduce changes to the last one of each key, and apply them to rows that stood. Reads no file.

Rows keep their places: a changed row stands where the old one stood, a deleted one is left out, and
rows of new keys follow at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.model.row_kind import CHANGE_ORDINAL, CHANGE_TYPE, ERASED, RowKind
from tidegate.physical.arrays import (
    Flags,
    Integers,
    boolean_column,
    flags,
    integer_column,
    text_column,
    where_true,
)
from tidegate.read.keys import KeyIndex

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WINDOW = "__tidegate_window"
"""Column of changes with the place of their window."""
ORDINAL = "__tidegate_ordinal"
STANDS = "__tidegate_stands"
TURN = "__tidegate_turn"
_ROW = "__tidegate_row"
_ORDER = (WINDOW, ORDINAL, TURN)
ORDER_COLUMNS = pa.schema([(WINDOW, pa.int32()), (ORDINAL, pa.int64()), (TURN, pa.bool_())])
"""What orders the changes of a key: their window, their commit in it, and of one commit first what
it removed. Of equals, the later row counts."""
_TOLD = pa.schema([*ORDER_COLUMNS, (STANDS, pa.bool_())])
_REMOVING = text_column([RowKind.DELETE.value, RowKind.UPDATE_BEFORE.value, ERASED])


def removes_row(kinds: pa.Array) -> Flags:
    """Return which changes tell of a row that is no longer there."""
    return flags(pc.is_in(kinds, value_set=_REMOVING.cast(kinds.type)))


def is_erased(kinds: pa.Array) -> Flags:
    """Return which changes stand in place of an erased row."""
    return where_true(pc.equal(kinds, pa.scalar(ERASED, kinds.type)))


def ordered_changes(rows: pa.RecordBatch, window: int, columns: pa.Schema) -> pa.RecordBatch:
    """Return staged changes with the columns that order them, and without those that only tell.

    Args:
        rows: as they were staged; without `_change_type` every row is an upsert.
        window: the place of their window.
        columns: the columns of published rows; one that the rows lack is NULL.
    """
    names, count = rows.schema.names, rows.num_rows
    stands: Flags = np.ones(count, np.bool_)
    turn = stands
    if CHANGE_TYPE in names:
        kinds = rows.column(CHANGE_TYPE)
        stands = ~removes_row(kinds)
        # It stands where the row would have stood.
        turn = stands | is_erased(kinds)
    ordinal = (
        rows.column(CHANGE_ORDINAL).cast(pa.int64())
        if CHANGE_ORDINAL in names
        else integer_column(np.zeros(count, np.int64))
    )
    order = [
        integer_column(np.full(count, window, np.int64)).cast(pa.int32()),
        ordinal,
        boolean_column(turn),
        boolean_column(stands),
    ]
    found = conformed(rows, columns)
    return pa.RecordBatch.from_arrays([*found.columns, *order], schema=with_order(columns))


def with_order(columns: pa.Schema) -> pa.Schema:
    """Return the schema of changes with the columns that order them."""
    return pa.schema([*columns, *_TOLD])


def conformed(rows: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    """Return rows with other columns: cast to wider types, or NULL where the rows lack them."""
    arrays = [
        rows.column(column.name).cast(column.type)
        if column.name in rows.schema.names
        else pa.nulls(rows.num_rows, column.type)
        for column in columns
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=columns)


@dataclass
class NewestChanges:
    """The last change of each key of a set, and which of them met a row that stood."""

    keys: Sequence[str]
    rows: pa.RecordBatch
    """With the columns of published rows."""
    stands: Flags
    """Whether the change leaves a row; else it removes one."""
    met: Flags = field(init=False)

    def __post_init__(self) -> None:
        """Begin with changes that no row has met."""
        self.met = np.zeros(self.rows.num_rows, np.bool_)

    @classmethod
    def of(cls, changes: pa.Table, keys: Sequence[str]) -> NewestChanges:
        """Reduce changes, which are in the order in which they were staged."""
        last = _last_of_each_key(changes, keys)
        taken = changes.take(integer_column(last)).combine_chunks()
        rows = taken.drop_columns(_TOLD.names)
        whole = pa.RecordBatch.from_arrays(
            [_one(column) for column in rows.columns], schema=rows.schema
        )
        return cls(keys, whole, flags(_one(taken.column(STANDS))))

    def index(self) -> KeyIndex:
        """Return what finds the changes of rows that stand."""
        return KeyIndex(self.keys, [self.rows.column(name) for name in self.keys])

    def new_rows(self, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of keys that no standing row had."""
        new = np.flatnonzero(self.stands & ~self.met)
        for start in range(0, len(new), batch_rows):
            yield self.rows.take(integer_column(new[start : start + batch_rows]))


def replaced(
    standing: pa.RecordBatch, positions: Integers, by: pa.RecordBatch, stays: Flags
) -> pa.RecordBatch:
    """Exchange rows for others in their places.

    Args:
        standing: the rows.
        positions: which are exchanged, ascending.
        by: one row for each of them, with the same columns.
        stays: whether it takes the place; else the row is left out.
    """
    places = np.arange(standing.num_rows)
    places[positions] = standing.num_rows + np.arange(len(positions))
    gone = positions[~stays]
    if len(gone):
        places = np.delete(places, gone)
    both = pa.concat_batches([standing, by])
    return both.take(integer_column(places))


def _last_of_each_key(changes: pa.Table, keys: Sequence[str]) -> Integers:
    """Return the row of the last change of each key, ascending."""
    frame = pl.DataFrame(pl.from_arrow(changes.select([*keys, *_ORDER]))).with_row_index(_ROW)
    if frame.get_column(ORDINAL).n_unique() > 1 or not frame.get_column(TURN).all():
        frame = frame.sort([*_ORDER, _ROW])
    last = frame.unique(subset=list(keys), keep="last").get_column(_ROW)
    found: Integers = np.sort(last.to_numpy().astype(np.int64))
    return found


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
