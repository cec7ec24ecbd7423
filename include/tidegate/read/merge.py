"""Read the rows of one open file that are wanted, in the order of ICE-6.1.

Knows no table format: how columns are conformed and what is gone is told.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.physical import BATCH_ROWS
from tidegate.physical.protocol import FilterStopped, Passing
from tidegate.read.alive import OneState, TwoStates, choice, newer, resolved
from tidegate.read.removed import Removed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tidegate.model.plan import Piece
    from tidegate.physical import PhysicalRows
    from tidegate.physical.protocol import Joinable
    from tidegate.predicate import Predicate
    from tidegate.read.removed import FileStates

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class ReadOptions:
    """What is wanted of each piece."""

    filter: Predicate | None = None
    """Applied to conformed batches: defaults and partition values take part (ICE-6.11)."""
    batch_rows: int = BATCH_ROWS
    """Most rows decoded at a time."""
    include_deleted: bool = False
    """Keep rows that are gone, marked by the column `_deleted` (ICE-3.23)."""


@dataclass(frozen=True)
class Conforming:
    """How the columns of one file become those that are read."""

    columns: Sequence[str]
    """Top-level columns of the file that are decoded."""
    conform: Callable[[pa.RecordBatch, int], pa.RecordBatch]
    """Turns decoded rows, the first of which has a position in the file, into the pinned columns;
    behind them stand those that only keys need. Rows stay what and where they are."""
    hidden: int = 0
    """So many columns at the end of conformed batches are there for the keys only."""
    positional: bool = False
    """Whether conformed columns depend on the position."""


class MergedPiece:
    """Reads a range of rows of an open file, without what is gone."""

    def __init__(
        self, file: PhysicalRows, piece: Piece, conforming: Conforming, states: FileStates
    ) -> None:
        """Prepare; nothing is decoded yet.

        Args:
            file: open, with at least the rows of the piece.
            piece: a range of its rows.
            conforming: from its columns to those that are read.
            states: what is gone in the states that are read.
        """
        self._file = file
        self._piece = piece
        self._conforming = conforming
        self._states = states

    def batches(self, options: ReadOptions) -> Iterator[pa.RecordBatch]:
        """Yield the rows that are wanted, in batches of at least one row."""
        self._states = resolved(self._states, lambda: self._conformed(options.batch_rows))
        wanted = choice(self._states, keeps_gone=options.include_deleted)
        if wanted is None:
            return
        done = 0
        filter = options.filter
        if isinstance(wanted, OneState) and filter and self._can_push(wanted, filter):
            try:
                for batch in self._pushed(wanted, filter, options.batch_rows):
                    done += batch.num_rows
                    yield batch
            except FilterStopped as stopped:
                # The plain way goes on behind the rows that were given, and knows what is wrong.
                _LOG.info("%s: no pushed filter after %s rows: %s", self._piece.path, done, stopped)
            else:
                return
        yield from behind(done, self._plain(wanted, options))

    def joinable(self, options: ReadOptions) -> Joinable | None:
        """Return what lets files be decoded with this one; None where they cannot be.

        A file can be that is read as it stands, whole and with a filter.
        """
        piece, conforming, filter = self._piece, self._conforming, options.filter
        is_whole = piece.row_start == 0 and piece.rows == self._file.rows
        if filter is None or options.include_deleted or not is_whole:
            return None
        if conforming.hidden or not self._states.are_plain:
            return None
        if not self._can_push(OneState(Removed(), None, keeps_gone=False), filter):
            return None
        return self._file.joinable(conforming.columns)

    def conformed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Give decoded rows of this file, or of one that is conformed alike, the pinned schema."""
        return self._conforming.conform(batch, self._piece.row_start)

    def _plain(
        self, wanted: OneState | TwoStates, options: ReadOptions
    ) -> Iterator[pa.RecordBatch]:
        piece = self._piece
        ranges = wanted.ranges(self._file.row_groups, piece.row_start, piece.row_end)
        for start, end in ranges:
            for position, batch in self._conformed(options.batch_rows, start, end):
                rows = self._last_steps(wanted.rows(batch, position))
                passing = options.filter
                yield rows if passing is None else rows.filter(passing.mask(rows))

    def _last_steps(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Leave out old rows, and columns that were there for the keys."""
        recent = newer(rows, self._states.newer)
        hidden = self._conforming.hidden
        return recent.select(recent.schema.names[:-hidden]) if hidden else recent

    def _conformed(
        self, batch_rows: int, start: int | None = None, end: int | None = None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        piece = self._piece
        start = piece.row_start if start is None else start
        end = piece.row_end if end is None else end
        for position, batch in self._file.batches(self._conforming.columns, start, end, batch_rows):
            yield position, self._conforming.conform(batch, position)

    def _can_push(self, wanted: OneState, filter: Predicate) -> bool:
        """Return whether the filter's columns come through `conform` as they were in the file."""
        piece, names = self._piece, set(self._conforming.columns)
        if self._conforming.positional or wanted.keeps_gone:
            return False
        if not piece.rows or not names.issuperset(filter.columns):
            return False
        probe = _row_of_nulls(self._file.schema, self._conforming.columns)
        conformed = self._conforming.conform(probe, piece.row_start)
        return _pass_unchanged(filter.columns, probe, conformed)

    def _pushed(
        self, wanted: OneState, filter: Predicate, batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Decode only rows that pass and stand at no deleted position.

        Which rows have a deleted key does not depend on the others, so it is asked afterwards.
        """
        piece = self._piece
        batches = self._file.filtered(
            self._conforming.columns,
            piece.row_start,
            piece.row_end,
            Passing(filter, wanted.removed.positions),
            batch_rows,
        )
        if batches is None:
            raise FilterStopped
        for batch in batches:
            conformed = self._conforming.conform(batch, piece.row_start)
            rows = self._last_steps(wanted.rows_with_live_keys(conformed))
            if rows.num_rows:
                yield rows


def _row_of_nulls(schema: pa.Schema, names: Sequence[str]) -> pa.RecordBatch:
    """Make a row to see what becomes of columns: to decode one takes a page of each of them."""
    fields = [schema.field(name) for name in names]
    columns = [pa.nulls(1, field.type) for field in fields]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, schema.metadata))


def _pass_unchanged(names: tuple[str, ...], before: pa.RecordBatch, after: pa.RecordBatch) -> bool:
    """Return whether columns came through `conform` as they were: name, type and memory.

    Args:
        names: columns of the filter.
        before: physical columns of at least one row.
        after: the same rows, conformed.
    """
    return all(
        before.column(name).type == after.column(name).type
        and _memory(before.column(name)) == _memory(after.column(name))
        for name in names
    )


def _memory(column: pa.Array) -> tuple[tuple[int, int], ...]:
    return tuple((buffer.address, buffer.size) for buffer in column.buffers() if buffer is not None)


def behind(rows: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Leave out so many rows at the beginning, and batches without rows."""
    left = rows
    for batch in batches:
        known = min(left, batch.num_rows)
        left -= known
        if batch.num_rows > known:
            yield batch.slice(known) if known else batch


def first_rows(batches: Iterable[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    """Yield no more than so many rows, and ask for no batch behind them (ICE-5.13)."""
    left = limit
    for batch in batches:
        yield batch.slice(0, left)
        left -= batch.num_rows
        if left <= 0:
            return
