"""Read one piece while its file is open, in the order of ICE-6.1."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.errors import SourceFileDamaged
from tidegate.physical.protocol import FilterStopped, Passing
from tidegate.read.alive import OneState, TwoStates, choice, newer, settled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidegate.model.plan import Piece
    from tidegate.physical import PhysicalRows
    from tidegate.physical.piece_format import PieceFormat
    from tidegate.predicate import Predicate

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class ReadOptions:
    """What is wanted of each piece."""

    filter: Predicate | None
    batch_rows: int
    """Most rows decoded at a time."""
    include_deleted: bool
    """Keep rows that are gone, marked."""


class OpenPiece:
    """One piece while its file is open."""

    def __init__(self, file: PhysicalRows, piece: Piece, format: PieceFormat) -> None:
        if file.rows < piece.row_end:
            raise SourceFileDamaged(
                path=piece.path,
                problem=f"expected at least {piece.row_end} rows, found {file.rows}",
            )
        self._file = file
        self._piece = piece
        self._format = format

    @cached_property
    def _columns(self) -> list[str]:
        return self._format.physical_columns(self._piece, self._file.schema)

    def read(self, options: ReadOptions) -> Iterator[pa.RecordBatch]:
        """Yield the piece's rows that are wanted, in batches of at least one row."""
        sides = self._format.removed(self._piece)
        self._sides = settled(sides, lambda: self._conformed(options.batch_rows))
        wanted = choice(self._sides, keeps_gone=options.include_deleted)
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
        for batch in self._plain(wanted, options):
            known = min(done, batch.num_rows)
            done -= known
            if batch.num_rows > known:
                yield batch.slice(known) if known else batch

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
        recent = newer(rows, self._sides.newer)
        hidden = self._sides.hidden
        return recent.select(recent.schema.names[:-hidden]) if hidden else recent

    def _conformed(
        self, batch_rows: int, start: int | None = None, end: int | None = None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        piece = self._piece
        start = piece.row_start if start is None else start
        end = piece.row_end if end is None else end
        for position, batch in self._file.batches(self._columns, start, end, batch_rows):
            yield position, self._format.conform(batch, piece, position)

    def _can_push(self, wanted: OneState, filter: Predicate) -> bool:
        """Return whether the filter's columns come through `conform` as they were in the file."""
        piece, names = self._piece, set(self._columns)
        if self._sides.positional or wanted.keeps_gone:
            return False
        if not piece.rows or not names.issuperset(filter.columns):
            return False
        probe = _row_of_nulls(self._file.schema, self._columns)
        conformed = self._format.conform(probe, piece, piece.row_start)
        return _pass_unchanged(filter.columns, probe, conformed)

    def _pushed(
        self, wanted: OneState, filter: Predicate, batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Decode only rows that pass and stand at no deleted position.

        Which rows have a deleted key does not depend on the others, so it is asked afterwards.
        """
        piece = self._piece
        batches = self._file.filtered(
            self._columns,
            piece.row_start,
            piece.row_end,
            Passing(filter, wanted.removed.positions),
            batch_rows,
        )
        if batches is None:
            raise FilterStopped
        for batch in batches:
            conformed = self._format.conform(batch, piece, piece.row_start)
            rows = self._last_steps(wanted.rows_with_live_keys(conformed))
            if rows.num_rows:
                yield rows


def _row_of_nulls(schema: pa.Schema, names: list[str]) -> pa.RecordBatch:
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
