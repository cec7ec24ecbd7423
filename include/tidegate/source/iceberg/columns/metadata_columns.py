"""Metadata columns: where a row comes from, and what it is (ICE-3.21, 3.22, 8.2)."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.config.reading import COMMIT_SEQUENCE, COMMIT_TIME
from tidegate.model.row_kind import CHANGE_TYPE, DELETED, RowKind
from tidegate.physical.arrays import boolean_column, integer_column, repeated_text
from tidegate.source.column_kernels import Wanted
from tidegate.source.iceberg.columns.slice_details import details_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from tidegate.model.file_slice import Change
    from tidegate.model.plan import Piece

FILE, POSITION, SPEC = "_file", "_pos", "_spec_id"
ORDINAL, COMMIT_SNAPSHOT = "_change_ordinal", "_commit_snapshot_id"
ROW_ID, UPDATED = "_row_id", "_last_updated_sequence_number"

TYPES: Mapping[str, pa.DataType] = MappingProxyType(
    {
        FILE: pa.string(),
        POSITION: pa.int64(),
        SPEC: pa.int32(),
        ROW_ID: pa.int64(),
        UPDATED: pa.int64(),
        DELETED: pa.bool_(),
        CHANGE_TYPE: pa.string(),
        ORDINAL: pa.int32(),
        COMMIT_SNAPSHOT: pa.int64(),
        COMMIT_TIME: pa.timestamp("us", "UTC"),
        COMMIT_SEQUENCE: pa.int64(),
    }
)
_OF_CHANGES = (CHANGE_TYPE, ORDINAL, COMMIT_SNAPSHOT)
ALWAYS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "changelog": _OF_CHANGES,
        "snapshot_diff": _OF_CHANGES,
        "lineage_upserts": (CHANGE_TYPE, ROW_ID, UPDATED),
    }
)
"""Per read mode, the columns that are always returned."""
POSITIONAL = frozenset({POSITION, ROW_ID})
"""The columns that depend on a row's position in its file."""
LINEAGE: Mapping[str, Wanted] = MappingProxyType(
    {
        ROW_ID: Wanted(2147483540, ROW_ID, pa.int64()),
        UPDATED: Wanted(2147483539, UPDATED, pa.int64()),
    }
)
"""The columns that rewritten files may contain themselves (ICE-8.2)."""


def metadata_column(
    name: str, batch: pa.RecordBatch, piece: Piece, position: int, kind: RowKind
) -> pa.Array:
    """Build one column for the rows of a batch.

    Args:
        name: one of `TYPES`.
        batch: may have a column of `LINEAGE`, as the file contains it.
        piece: the piece that the rows belong to.
        position: physical position of the first row; the others follow it.
        kind: the kind of rows that are in one state only.
    """
    rows = batch.num_rows
    if name in LINEAGE:
        return _lineage(name, batch, piece, position)
    if name in _TEXTS:
        return repeated_text(_TEXTS[name](piece, kind), rows)
    if name == POSITION:
        return integer_column(np.arange(position, position + rows, dtype=np.int64))
    if name in _OF_COMMIT:
        change = piece.slice.change
        value = _OF_COMMIT[name](change) if change is not None else None
        return pa.repeat(pa.scalar(value, TYPES[name]), rows)
    if name == DELETED:
        return boolean_column(np.zeros(rows, dtype=np.bool_))
    numbers = integer_column(np.full(rows, _NUMBERS[name](piece), dtype=np.int64))
    return numbers.cast(TYPES[name])


def _lineage(name: str, batch: pa.RecordBatch, piece: Piece, position: int) -> pa.Array:
    first, rows = details_of(piece.slice)["first_row_id"], batch.num_rows
    if first is None:
        return pa.nulls(rows, pa.int64())
    if name == ROW_ID:
        start = first + position
        inherited = np.arange(start, start + rows, dtype=np.int64)
    else:
        inherited = np.full(rows, details_of(piece.slice)["sequence"], dtype=np.int64)
    return pc.coalesce(batch.column(name), integer_column(inherited))


def _of_change(
    of_change: Callable[[Change], int], otherwise: Callable[[Piece], int]
) -> Callable[[Piece], int]:
    def find(piece: Piece) -> int:
        change = piece.slice.change
        return of_change(change) if change is not None else otherwise(piece)

    return find


_TEXTS: Mapping[str, Callable[[Piece, RowKind], str]] = MappingProxyType(
    {FILE: lambda piece, _: piece.path, CHANGE_TYPE: lambda _, kind: kind.value}
)
_OF_COMMIT: Mapping[str, Callable[[Change], datetime | int | None]] = MappingProxyType(
    {COMMIT_TIME: lambda change: change.time, COMMIT_SEQUENCE: lambda change: change.sequence}
)
_NUMBERS: Mapping[str, Callable[[Piece], int]] = MappingProxyType(
    {
        SPEC: lambda piece: details_of(piece.slice)["spec"],
        ORDINAL: _of_change(lambda change: change.ordinal, lambda _: 0),
        COMMIT_SNAPSHOT: _of_change(
            lambda change: change.commit, lambda piece: details_of(piece.slice)["snapshot"]
        ),
    }
)
