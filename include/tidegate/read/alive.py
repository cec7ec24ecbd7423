"""Choose the rows of a file that are wanted: alive, gone, or different between two states.

Pure: takes conformed batches, and what the format says is gone (ICE-3.9, 3.11, 6.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.model.row_kind import CHANGE_TYPE, DELETED, RowKind
from tidegate.physical.arrays import (
    boolean_column,
    flags,
    integer_column,
    integers,
    repeated_text,
)
from tidegate.read.keys import KeyIndex, index_of
from tidegate.read.positions import are_at, differing, ranges_with, united

if TYPE_CHECKING:
    from tidegate.physical import RowGroup
    from tidegate.read.removed import FileStates, NewerThan, Removed

Ranges = list[tuple[int, int]]
Batches = Callable[[], Iterator[tuple[int, pa.RecordBatch]]]


@dataclass(frozen=True)
class OneState:
    """The rows of a file that are alive in the only state that has it."""

    removed: Removed
    kind: RowKind | None
    """The kind of change of these rows; None in a plain read."""
    keeps_gone: bool
    """Keep rows that are gone, marked by the column `_deleted`."""

    def ranges(self, groups: Sequence[RowGroup], start: int, end: int) -> Ranges:
        """Return what must be decoded of a range of rows."""
        del groups
        return [(start, end)]

    def rows(self, batch: pa.RecordBatch, position: int) -> pa.RecordBatch:
        """Return the wanted rows of a batch, whose first row has the given position."""
        if self.keeps_gone:
            found = _gone(self.removed, batch, position)
            return batch if found is None else _with(batch, DELETED, found)
        return self.of_kind(_without(batch, _gone(self.removed, batch, position)))

    def rows_with_live_keys(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the wanted rows of a batch from which deleted positions were removed before."""
        return self.of_kind(_without(batch, _with_deleted_key(self.removed, batch)))

    def of_kind(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Fill the column with the kind of change, if rows are read as changes."""
        if self.kind is None:
            return batch
        return _with(batch, CHANGE_TYPE, repeated_text(self.kind.value, batch.num_rows))


@dataclass(frozen=True)
class TwoStates:
    """The rows of a file that are alive in one of two states only."""

    before: Removed
    after: Removed

    def ranges(self, groups: Sequence[RowGroup], start: int, end: int) -> Ranges:
        """Return what must be decoded of a range of rows.

        If the same keys are deleted in both states, these are the row groups with a position that
        is deleted in only one of them (ICE-3.11).
        """
        if self.before.keys == self.after.keys:
            changed = differing(self.before.positions, self.after.positions)
            return ranges_with(changed, groups, start, end)
        return [(start, end)]

    def rows(self, batch: pa.RecordBatch, position: int) -> pa.RecordBatch:
        """Return the rows that differ, each with its kind."""
        none = boolean_column(np.zeros(batch.num_rows, dtype=np.bool_))
        before = _gone(self.before, batch, position)
        after = _gone(self.after, batch, position)
        before, after = (none if gone is None else gone for gone in (before, after))
        changed = pc.xor(before, after)
        rows = batch.filter(changed)
        inserted, deleted = (
            repeated_text(kind.value, rows.num_rows) for kind in (RowKind.INSERT, RowKind.DELETE)
        )
        return _with(rows, CHANGE_TYPE, pc.if_else(before.filter(changed), inserted, deleted))


def choice(states: FileStates, *, keeps_gone: bool) -> OneState | TwoStates | None:
    """Return which rows of a file are wanted; None if none are."""
    if states.before is not None and states.after is not None:
        return TwoStates(states.before, states.after)
    if states.after is not None:
        return OneState(states.after, RowKind.INSERT if states.kinds else None, keeps_gone)
    if states.before is not None:
        return OneState(states.before, RowKind.DELETE, False)
    return None


def resolved(states: FileStates, batches: Batches) -> FileStates:
    """Replace key sets that do not fit into memory by positions, in one pass per part (ICE-6.9).

    Args:
        states: the states as the format describes them.
        batches: returns an iterator over the piece's conformed batches and their positions, from
            the start at each call.
    """
    before, after = states.before, states.after
    of_after = _matching(after, batches)
    if before is not None and after is not None and before.passes == after.passes:
        of_before = of_after
    else:
        of_before = _matching(before, batches)
    return replace(states, before=_with_more(before, of_before), after=_with_more(after, of_after))


def newer(batch: pa.RecordBatch, than: NewerThan | None) -> pa.RecordBatch:
    """Return the rows whose column is greater than a bound (ICE-8.3)."""
    if than is None or not batch.num_rows:
        return batch
    column = batch.column(than.column)
    greater = integers(column) > than.bound_exclusive
    return batch.filter(boolean_column(greater & flags(column.is_valid())))


def _matching(removed: Removed | None, batches: Batches) -> pa.Int64Array | None:
    """Find the positions of rows with a key of the sets that come in passes."""
    if removed is None or not removed.passes:
        return None
    parts = []
    for keys in chain.from_iterable(removed.passes):
        index = KeyIndex(keys.columns, keys.rows.columns)
        for position, batch in batches():
            found = index.holds(batch)
            if found is not None:
                parts.append(integer_column(np.flatnonzero(flags(found)) + position))
    return united(parts) if parts else None


def _with_more(removed: Removed | None, positions: pa.Int64Array | None) -> Removed | None:
    if removed is None or not removed.passes:
        return removed
    known = [part for part in (removed.positions, positions) if part is not None]
    return replace(removed, positions=united(known) if known else None, passes=())


def _gone(removed: Removed, batch: pa.RecordBatch, position: int) -> pa.BooleanArray | None:
    """Return which rows are gone; None if none are."""
    by_key = _with_deleted_key(removed, batch)
    if removed.positions is None:
        return by_key
    return _either(are_at(removed.positions, position, batch.num_rows), by_key)


def _with_deleted_key(removed: Removed, batch: pa.RecordBatch) -> pa.BooleanArray | None:
    found = None
    for keys in removed.keys:
        found = _either(found, index_of(keys).holds(batch))
    return found


def _either(one: pa.BooleanArray | None, other: pa.BooleanArray | None) -> pa.BooleanArray | None:
    if one is None or other is None:
        return one if other is None else other
    return pc.or_(one, other)


def _without(batch: pa.RecordBatch, gone: pa.BooleanArray | None) -> pa.RecordBatch:
    return batch if gone is None else batch.filter(pc.invert(gone))


def _with(batch: pa.RecordBatch, name: str, column: pa.Array) -> pa.RecordBatch:
    """Fill a column if the read has it."""
    index = batch.schema.get_field_index(name)
    return batch if index < 0 else batch.set_column(index, batch.schema.field(index), column)
