"""Read pieces of files as bounded batches in the pipeline's schema.

Knows no format, neither of files nor of tables: what columns and deletes mean is told by a
`PieceFormat`.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from tidegate.errors import (
    ColumnUnreadable,
    SourceFileDamaged,
    SourceFileGone,
    StorageDenied,
    TidegateError,
)
from tidegate.physical import BATCH_ROWS, PhysicalRows, RowGroup, UnreadableValue
from tidegate.physical.protocol import FilterStopped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidegate.model.plan import Piece
    from tidegate.predicate import Predicate

_LOG = logging.getLogger(__name__)


class PieceFormat(Protocol):
    """What reading needs to know of a table format, bound to one pinned schema."""

    def open(self, piece: Piece) -> PhysicalRows:
        """Open the piece's file."""
        ...

    def physical_columns(self, piece: Piece, file_schema: pa.Schema) -> list[str]:
        """Name the columns of the file that `conform` needs; no others are decoded."""
        ...

    def conform(self, batch: pa.RecordBatch, piece: Piece, position: int) -> pa.RecordBatch:
        """Give a batch of physical columns, whose first row has a position, the pinned schema."""
        ...


def read_pieces(
    pieces: Iterable[Piece],
    format: PieceFormat,
    *,
    filter: Predicate | None = None,
    batch_rows: int = BATCH_ROWS,
) -> Iterator[pa.RecordBatch]:
    """Read pieces one after the other; the rows of few batches are decoded at a time.

    Args:
        pieces: in the order in which their rows are wanted.
        format: opens the files and conforms their batches.
        filter: applied to conformed batches, so that defaults and partition values take part
            (ICE-6.11).
        batch_rows: most rows decoded at a time.

    Yields:
        Batches of the pinned schema with at least one row.

    Raises:
        SourceFileGone: a file of the plan does not exist any more.
        SourceFileDamaged: a file cannot be read as what the plan says.
        ColumnUnreadable: a column has a value that cannot be held.
    """
    for piece in pieces:
        try:
            with format.open(piece) as file:
                located = in_rows(piece, file.row_groups) if piece.byte_range else piece
                yield from _OpenPiece(file, located, format).read(filter, batch_rows)
        except TidegateError:
            raise
        except FileNotFoundError as gone:
            raise SourceFileGone(path=piece.path) from gone
        except PermissionError as denied:
            raise StorageDenied(path=piece.path, problem=str(denied)) from denied
        except UnreadableValue as value:
            raise ColumnUnreadable(
                path=piece.path, column=value.column, problem=value.problem
            ) from value
        except (OSError, pa.ArrowException) as damaged:
            raise SourceFileDamaged(path=piece.path, problem=str(damaged).strip()) from damaged


def in_rows(piece: Piece, groups: Iterable[RowGroup]) -> Piece:
    """Give a piece that was cut at bytes its rows: of the groups that begin there (ICE-5.2)."""
    start, end = piece.byte_range or (0, 0)
    position = first = rows = 0
    for group in groups:
        if group.offset is None:
            raise SourceFileDamaged(path=piece.path, problem="row groups do not say where they are")
        if start <= group.offset < end:
            first = first if rows else position
            rows += group.rows
        position += group.rows
    return replace(piece, row_start=first, rows=rows, byte_range=None)


class _OpenPiece:
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
        self._columns = format.physical_columns(piece, file.schema)

    def read(self, filter: Predicate | None, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Give the piece's rows that pass, in batches of at least one row."""
        done = 0
        if filter is not None and self._can_push(filter):
            try:
                for batch in self._pushed(filter, batch_rows):
                    done += batch.num_rows
                    yield batch
            except FilterStopped as stopped:
                # The plain way goes on behind the rows that were given, and knows what is wrong.
                _LOG.info("%s: no pushed filter after %s rows: %s", self._piece.path, done, stopped)
            else:
                return
        for batch in self._plain(batch_rows):
            passing = batch if filter is None else batch.filter(filter.mask(batch))
            known = min(done, passing.num_rows)
            done -= known
            if passing.num_rows > known:
                yield passing.slice(known) if known else passing

    def _can_push(self, filter: Predicate) -> bool:
        """Say whether the filter's columns come through `conform` as they were in the file."""
        piece, names = self._piece, set(self._columns)
        if not piece.rows or not names.issuperset(filter.columns):
            return False
        position, probe = next(
            self._file.batches(self._columns, piece.row_start, piece.row_start + 1)
        )
        return _pass_unchanged(filter.columns, probe, self._format.conform(probe, piece, position))

    def _pushed(self, filter: Predicate, batch_rows: int) -> Iterator[pa.RecordBatch]:
        piece = self._piece
        batches = self._file.filtered(
            self._columns, piece.row_start, piece.row_end, filter, batch_rows
        )
        if batches is None:
            raise FilterStopped
        for batch in batches:
            yield self._format.conform(batch, piece, piece.row_start)

    def _plain(self, batch_rows: int) -> Iterator[pa.RecordBatch]:
        piece = self._piece
        for position, batch in self._file.batches(
            self._columns, piece.row_start, piece.row_end, batch_rows
        ):
            yield self._format.conform(batch, piece, position)


def _pass_unchanged(names: tuple[str, ...], before: pa.RecordBatch, after: pa.RecordBatch) -> bool:
    """Say whether columns came through `conform` as they were: same name, same type, same memory.

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
