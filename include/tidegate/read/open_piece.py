"""Open the file of a piece, and name the file in whatever goes wrong while it is read."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.errors import (
    ColumnUnreadable,
    SourceFileDamaged,
    SourceFileGone,
    SourceRowInvalid,
    StorageDenied,
    TidegateError,
)
from tidegate.physical import RowGroup, UnreadableValue
from tidegate.physical.streamed import InvalidRow
from tidegate.storage import silence_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tidegate.model.plan import Piece
    from tidegate.physical import PhysicalRows


def open_piece(piece: Piece, open: Callable[[Piece], PhysicalRows]) -> tuple[PhysicalRows, Piece]:
    """Open a piece's base file; whoever asked closes it.

    Args:
        piece: a range of rows, or of bytes.
        open: opens the file as the source planned it.

    Returns:
        The open file, and the piece with its range in rows.

    Raises:
        TidegateError: as `damage_named`.
    """
    with damage_named(piece.path), ExitStack() as opened:
        file = opened.enter_context(open(piece))
        located = in_rows(piece, file.row_groups) if piece.byte_range else piece
        if file.rows < located.row_end:
            problem = f"expected at least {located.row_end} rows, found {file.rows}"
            raise SourceFileDamaged(path=piece.path, problem=problem)
        opened.pop_all()
        return file, located


@contextmanager
def damage_named(path: str) -> Iterator[None]:
    """Name the file in whatever goes wrong while it is opened or read.

    Raises:
        SourceFileGone: a file of the plan does not exist any more.
        SourceFileDamaged: a file cannot be read as what the plan says.
        ColumnUnreadable: a column has a value that cannot be held.
        SourceRowInvalid: a row of a text file does not fit the columns.
        StorageDenied: a file may not be read.
        StorageSilent: the file system does not answer now (Transient).
    """
    try:
        yield
    except TidegateError:
        raise
    except FileNotFoundError as gone:
        raise SourceFileGone(path=path) from gone
    except PermissionError as denied:
        raise StorageDenied(path=path, problem=str(denied)) from denied
    except InvalidRow as invalid:
        problem = SourceRowInvalid.said(invalid.row, invalid.column, invalid.problem)
        raise SourceRowInvalid(path=path, problem=problem) from invalid
    except UnreadableValue as value:
        raise ColumnUnreadable(path=path, column=value.column, problem=value.problem) from value
    except (OSError, pa.ArrowException) as damaged:
        raise (
            silence_of(path, damaged) or SourceFileDamaged(path=path, problem=str(damaged).strip())
        ) from damaged


def in_rows(piece: Piece, groups: Iterable[RowGroup]) -> Piece:
    """Turn the bytes of a piece into the rows of the groups that begin there (ICE-5.2)."""
    start, end = piece.byte_range or (0, 0)
    position = first = rows = 0
    for group in groups:
        if group.offset is None and group.rows:
            raise SourceFileDamaged(path=piece.path, problem="row groups do not say where they are")
        if group.offset is not None and start <= group.offset < end:
            first = first if rows else position
            rows += group.rows
        position += group.rows
    return replace(piece, row_start=first, rows=rows, byte_range=None)
