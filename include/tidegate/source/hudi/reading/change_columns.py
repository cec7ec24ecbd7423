"""The columns of changes: kind, number of the write, and whether a record lacks columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.model.row_kind import CHANGE_TYPE, RowKind
from tidegate.physical.arrays import flags
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
}
"""The writer's words for the kinds of rows, as Flink stores them."""


def stays_a_row(records: KeyedRecords) -> Flags:
    """Return which records are rows; the one before an update is, though the merge removes it."""
    stays = ~records.deleted
    if OPERATION in records.rows.column_names:
        is_before = pc.equal(records.rows.column(OPERATION), _BEFORE)
        stays |= flags(is_before.combine_chunks().fill_null(False))
    return stays


def marked_partial(rows: pa.Table, *, is_partial: bool) -> pa.Table:
    """Return the rows of one block with the mark, if it is asked for."""
    if PARTIAL not in rows.column_names:
        return rows
    place = rows.column_names.index(PARTIAL)
    return rows.set_column(place, PARTIAL, pa.repeat(is_partial, len(rows)))


def told_apart(rows: pa.Table, *, is_changelog: bool) -> pa.Table:
    """Return rows with their kind: that of the writer in a changelog, else `UPSERT`."""
    kinds = pa.nulls(len(rows), pa.string())
    if is_changelog and OPERATION in rows.column_names:
        written = rows.column(OPERATION)
        for operation, kind in _KINDS.items():
            kinds = pc.if_else(pc.equal(written, operation).fill_null(False), kind.value, kinds)
    place = rows.column_names.index(CHANGE_TYPE)
    return rows.set_column(place, CHANGE_TYPE, pc.fill_null(kinds, RowKind.UPSERT.value))


def numbered(rows: pa.RecordBatch, details: SliceDetails) -> pa.RecordBatch:
    """Return rows with the number of their write, and whether they lack columns, if asked for."""
    made = rows
    for name, value in ((ORDINAL, details.get("ordinal", 0)), (PARTIAL, False)):
        place = made.schema.get_field_index(name)
        if place >= 0:
            filled = pc.fill_null(made.column(place), value)
            made = made.set_column(place, made.schema.field(place), filled)
    return made
