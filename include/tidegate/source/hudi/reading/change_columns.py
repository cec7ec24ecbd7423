"""The columns of changes: kind, number of the write, and whether a record lacks columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.model.row_kind import CHANGE_TYPE, RowKind
from tidegate.physical.arrays import (
    boolean_column,
    integer_column,
    repeated_text,
    text_scalar,
    where_true,
    whole,
)
from tidegate.source.hudi.table.columns import OPERATION, ORDINAL, PARTIAL

if TYPE_CHECKING:
    from tidegate.physical.arrays import Flags
    from tidegate.read.keyed_merge import KeyedRecords
    from tidegate.source.hudi.slices.details import SliceDetails

_BEFORE = "-U"
_KINDS = {
    "I": RowKind.INSERT,
    _BEFORE: RowKind.UPDATE_BEFORE,
    "U": RowKind.UPDATE_AFTER,
    "D": RowKind.DELETE,
}
"""The writer's words for the kinds of rows, as Flink stores them."""


def stays_a_row(records: KeyedRecords) -> Flags:
    """Return which records are rows; the one before an update is, though the merge removes it."""
    stays = ~records.deleted
    if OPERATION in records.rows.column_names:
        is_before = pc.equal(whole(records.rows.column(OPERATION)), text_scalar(_BEFORE))
        stays |= where_true(is_before)
    return stays


def marked_partial(rows: pa.Table, *, is_partial: bool) -> pa.Table:
    """Return the rows of one block with the mark, if it is asked for."""
    if PARTIAL not in rows.column_names:
        return rows
    place = rows.column_names.index(PARTIAL)
    return rows.set_column(place, PARTIAL, boolean_column(np.full(len(rows), is_partial)))


def told_apart(
    rows: pa.Table, *, is_changelog: bool, otherwise: RowKind = RowKind.UPSERT
) -> pa.Table:
    """Return rows with their kind: that of the writer in a changelog, if it tells one."""
    kinds = repeated_text(otherwise.value, len(rows))
    if is_changelog and OPERATION in rows.column_names:
        written = whole(rows.column(OPERATION))
        for operation, kind in _KINDS.items():
            is_one = where_true(pc.equal(written, text_scalar(operation)))
            kinds = pc.if_else(boolean_column(is_one), text_scalar(kind.value), kinds)
    place = rows.column_names.index(CHANGE_TYPE)
    return rows.set_column(place, CHANGE_TYPE, kinds)


def numbered(rows: pa.RecordBatch, details: SliceDetails) -> pa.RecordBatch:
    """Return rows with the number of their write, and whether they lack columns, if asked for."""
    made = rows
    ordinal = integer_column(np.array([details.get("ordinal", 0)]))
    for name, value in ((ORDINAL, ordinal), (PARTIAL, boolean_column(np.zeros(1, np.bool_)))):
        place = made.schema.get_field_index(name)
        if place >= 0:
            column = made.column(place)
            filled = column.fill_null(value.cast(column.type)[0])
            made = made.set_column(place, made.schema.field(place), filled)
    return made
