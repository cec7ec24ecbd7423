"""Read pieces of files as bounded batches in the pipeline's schema.

Knows no format, neither of files nor of tables: what columns and deletes mean is told by a
`PieceFormat`.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.errors import (
    ColumnUnreadable,
    SourceFileDamaged,
    SourceFileGone,
    StorageDenied,
    TidegateError,
)
from tidegate.physical import BATCH_ROWS, RowGroup, UnreadableValue
from tidegate.read.open_piece import OpenPiece, ReadOptions
from tidegate.storage import silence_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidegate.model.plan import Piece
    from tidegate.physical.piece_format import PieceFormat
    from tidegate.predicate import Predicate


def read_pieces(
    pieces: Iterable[Piece],
    format: PieceFormat,
    *,
    filter: Predicate | None = None,
    batch_rows: int = BATCH_ROWS,
    limit: int | None = None,
    include_deleted: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Read pieces one after the other; the rows of few batches are decoded at a time.

    Args:
        pieces: in the order in which their rows are wanted.
        format: opens the files and conforms their batches.
        filter: applied to conformed batches, so that defaults and partition values take part
            (ICE-6.11).
        batch_rows: most rows decoded at a time.
        limit: end after so many rows (ICE-5.13).
        include_deleted: keep rows that are gone, marked by the column `_deleted` (ICE-3.23).

    Yields:
        Batches of the pinned schema with at least one row.

    Raises:
        SourceFileGone: a file of the plan does not exist any more.
        SourceFileDamaged: a file cannot be read as what the plan says.
        ColumnUnreadable: a column has a value that cannot be held.
        StorageSilent: the file system does not answer now (Transient).
    """
    batches = _batches(pieces, format, ReadOptions(filter, batch_rows, include_deleted))
    return batches if limit is None else first_rows(batches, limit)


def _batches(
    pieces: Iterable[Piece], format: PieceFormat, options: ReadOptions
) -> Iterator[pa.RecordBatch]:
    for piece in pieces:
        with _damage_named(piece), format.open(piece) as file:
            located = in_rows(piece, file.row_groups) if piece.byte_range else piece
            yield from OpenPiece(file, located, format).read(options)


def first_rows(batches: Iterable[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    """Yield no more than so many rows, and ask for no batch behind them (ICE-5.13)."""
    left = limit
    for batch in batches:
        yield batch.slice(0, left)
        left -= batch.num_rows
        if left <= 0:
            return


@contextmanager
def _damage_named(piece: Piece) -> Iterator[None]:
    """Name the file in whatever goes wrong while it is read."""
    try:
        yield
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
        raise (
            silence_of(piece.path, damaged)
            or SourceFileDamaged(path=piece.path, problem=str(damaged).strip())
        ) from damaged


def in_rows(piece: Piece, groups: Iterable[RowGroup]) -> Piece:
    """Return a piece that was cut at bytes its rows: of the groups that begin there (ICE-5.2)."""
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
