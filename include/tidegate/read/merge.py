"""Read the wanted rows of one open file, in the steps of ICE-6.1.

Knows no table format: the caller provides how columns are conformed and which rows are gone.
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
    """The reading options of a piece."""

    filter: Predicate | None = None
    """The filter, applied to conformed batches with defaults and partition values (ICE-6.11)."""
    batch_rows: int = BATCH_ROWS
    """The most rows that are decoded at a time."""
    include_deleted: bool = False
    """Keep rows that are gone, marked by the column `_deleted` (ICE-3.23)."""


@dataclass(frozen=True)
class Conforming:
    """How the columns of one file are converted to those that are read."""

    columns: Sequence[str]
    """Top-level columns of the file that are decoded."""
    conform: Callable[[pa.RecordBatch, int], pa.RecordBatch]
    """Converts decoded rows to the pinned columns, followed by those that only keys need; it
    receives the position of the first row in the file, and keeps rows and their order."""
    hidden: int = 0
    """The number of columns at the end of conformed batches that are only needed for keys."""
    positional: bool = False
    """Whether conformed columns depend on the position of a row."""


class MergedPiece:
    """Reads a range of rows of an open file, without what is gone."""

    def __init__(
        self, file: PhysicalRows, piece: Piece, conforming: Conforming, states: FileStates
    ) -> None:
        """Prepare; nothing is decoded yet.

        Args:
            file: open, with at least the rows of the piece.
            piece: a range of its rows.
            conforming: how its columns are converted.
            states: the rows that are gone in the states that are read.
        """
        self._file = file
        self._piece = piece
        self._conforming = conforming
        self._states = states

    def batches(self, options: ReadOptions) -> Iterator[pa.RecordBatch]:
        """Yield the wanted rows, in batches of at least one row."""
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
                # The plain way continues after the rows that were returned, and reports the error,
                # if any.
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
        """Remove old rows, and columns that were only needed for keys."""
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
        """Return whether `conform` leaves the filter's columns as they are in the file."""
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
        """Decode only rows that pass the filter and are not at a deleted position.

        Deleted keys do not depend on other rows, so they are checked afterwards.
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
    """Build a row to see how columns are converted; to decode one takes a page of each."""
    fields = [schema.field(name) for name in names]
    columns = [pa.nulls(1, field.type) for field in fields]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, schema.metadata))


def _pass_unchanged(names: tuple[str, ...], before: pa.RecordBatch, after: pa.RecordBatch) -> bool:
    """Return whether `conform` left columns as they were: name, type and memory.

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
    """Yield no more than a number of rows, and read no batch after them (ICE-5.13)."""
    left = limit
    for batch in batches:
        yield batch.slice(0, left)
        left -= batch.num_rows
        if left <= 0:
            return
