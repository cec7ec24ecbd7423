"""Read pieces in their order; small plain files that follow each other are decoded together.

Opening a file for decoding costs as much as decoding some thousand rows of it. The rows, and the
error for a file that cannot be read, are the same as if each piece was read by itself.
"""

from __future__ import annotations

import logging
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, Self

import pyarrow as pa

from tidegate.errors import TidegateError
from tidegate.physical.joined_files import are_few, joined_batches
from tidegate.physical.protocol import FilterStopped
from tidegate.physical.pushed_filter import TOGETHER_BYTES, TOGETHER_ROWS
from tidegate.read.merge import behind
from tidegate.read.open_piece import damage_named, open_piece

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from tidegate.model.plan import Piece
    from tidegate.physical import PhysicalRows
    from tidegate.physical.protocol import Joinable
    from tidegate.predicate import Predicate
    from tidegate.read.merge import MergedPiece, ReadOptions

_LOG = logging.getLogger(__name__)


class PieceReader(Protocol):
    """Opens and merges the pieces of one kind of source."""

    def open(self, piece: Piece) -> PhysicalRows:
        """Open the piece's base file."""
        ...

    def merge_read(self, file: PhysicalRows, piece: Piece) -> MergedPiece:
        """Return how a range of rows of the open file is read."""
        ...

    def alike(self, piece: Piece) -> Hashable:
        """Return a value that is equal for pieces without deltas that are conformed alike.

        Returns:
            Equal for two pieces that are conformed alike if their files have equal columns; None
            for a piece that is like no other.
        """
        ...


def read_pieces(
    pieces: Iterable[Piece], reader: PieceReader, options: ReadOptions
) -> Iterator[pa.RecordBatch]:
    """Read the wanted rows of pieces.

    Args:
        pieces: in the order of their rows.
        reader: opens their files.
        options: which rows and columns are wanted.

    Yields:
        Batches with at least one row, each of one piece or of several.

    Raises:
        TidegateError: as `damage_named` and the reader, after all rows before the error.
    """
    with _Bundle(reader, options) as bundle:
        for piece in pieces:
            if not bundle.takes(piece):
                yield from bundle.batches()
                bundle.begin(piece)
        yield from bundle.batches()


@dataclass(frozen=True, eq=False)
class _Opened:
    """A piece whose file is open."""

    piece: Piece
    file: PhysicalRows
    reader: PieceReader

    @cached_property
    def read(self) -> MergedPiece:
        """How the piece is read by itself."""
        return self.reader.merge_read(self.file, self.piece)

    def joining(self, first: Joinable) -> Joinable | None:
        """Return what allows decoding it with another one, if all rows of its file are wanted."""
        is_whole = self.piece.row_start == 0 and self.piece.rows == self.file.rows
        return self.file.joining(first) if is_whole else None


class _Bundle:
    """The pieces that are read next, usually one; a context manager that closes their files."""

    def __init__(self, reader: PieceReader, options: ReadOptions) -> None:
        self._reader = reader
        self._options = options
        self._opened: list[_Opened] = []
        self._joined: list[Joinable] = []
        """The files, if they are decoded together."""
        self._next: _Opened | None = None

    def takes(self, piece: Piece) -> bool:
        """Add a piece if it can be decoded with those already in the bundle."""
        if not self._joined or not self._is_like_first(piece):
            return False
        try:
            self._next = self._open(piece)
        except TidegateError:
            # It is opened again, and its error raised, after all rows before it.
            return False
        joining = self._next.joining(self._joined[0])
        if joining is None or not are_few([*self._joined, joining]):
            return False
        self._opened.append(self._next)
        self._joined.append(joining)
        self._next = None
        return True

    def begin(self, piece: Piece) -> None:
        """Begin the bundle with a piece."""
        first = self._next or self._open(piece)
        self._opened, self._joined, self._next = [first], [], None
        if _may_join(piece) and self._reader.alike(piece) is not None:
            with damage_named(piece.path):
                joinable = first.read.joinable(self._options)
            self._joined = [joinable] if joinable else []

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read the pieces of the bundle, and close it."""
        opened, self._opened = self._opened, []
        with ExitStack() as files:
            for one in opened:
                files.push(one.file)
            done, passing = 0, self._options.filter
            if len(opened) > 1 and passing is not None:
                try:
                    for batch in self._together(opened[0].read, passing):
                        done += batch.num_rows
                        yield batch
                except FilterStopped as stopped:
                    # Reading them one by one finds the file, and its error.
                    first, more = opened[0].piece.path, len(opened) - 1
                    _LOG.info("%s and %s more: not read together: %s", first, more, stopped)
                else:
                    return
            yield from behind(done, self._one_by_one(opened))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the files that were not read."""
        with ExitStack() as files:
            for one in (*self._opened, *filter(None, [self._next])):
                files.push(one.file)

    def _open(self, piece: Piece) -> _Opened:
        file, located = open_piece(piece, self._reader.open)
        return _Opened(located, file, self._reader)

    def _is_like_first(self, piece: Piece) -> bool:
        alike = self._reader.alike
        return _may_join(piece) and alike(piece) == alike(self._opened[0].piece)

    def _together(self, read: MergedPiece, passing: Predicate) -> Iterator[pa.RecordBatch]:
        try:
            for batch in joined_batches(self._joined, passing, self._options.batch_rows):
                if batch.num_rows:
                    yield read.conformed(batch)
        except (TidegateError, pa.ArrowException) as refused:
            raise FilterStopped(str(refused)) from refused

    def _one_by_one(self, opened: Iterable[_Opened]) -> Iterator[pa.RecordBatch]:
        for one in opened:
            with damage_named(one.piece.path):
                yield from one.read.batches(self._options)


def _may_join(piece: Piece) -> bool:
    """Return whether a piece may be read with others, as far as the plan shows it.

    Others are not opened before their turn, because opening them may take long, or fail.
    """
    slice = piece.slice
    is_plain = not slice.deltas and slice.change is None and slice.check is None
    return is_plain and piece.rows <= TOGETHER_ROWS and piece.size_bytes <= TOGETHER_BYTES
