"""A source's reading side that a test makes of a few functions, over the real kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from tidegate.model.file_slice import FileSlice
from tidegate.model.plan import Piece
from tidegate.physical import ParquetRows
from tidegate.read import pieces as pieces_of
from tidegate.read.merge import Conforming, MergedPiece, ReadOptions, first_rows
from tidegate.read.removed import WHOLE, FileStates

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from tidegate.physical import PhysicalRows


class Hooks(Protocol):
    """What a test says of its files."""

    def open(self, piece: Piece) -> ParquetRows: ...

    def physical_columns(self, piece: Piece, file_schema: pa.Schema) -> list[str]: ...

    def removed(self, piece: Piece) -> FileStates: ...

    def conform(self, batch: pa.RecordBatch, piece: Piece, position: int) -> pa.RecordBatch: ...

    def alike(self, piece: Piece) -> Hashable: ...


class PlainHooks:
    """Parquet files that are read as they are."""

    def open(self, piece: Piece) -> ParquetRows:
        return ParquetRows(pa.OSFile(piece.path))

    def physical_columns(self, piece: Piece, file_schema: pa.Schema) -> list[str]:
        return file_schema.names

    def removed(self, piece: Piece) -> FileStates:
        return WHOLE

    def conform(self, batch: pa.RecordBatch, piece: Piece, position: int) -> pa.RecordBatch:
        return batch

    def alike(self, piece: Piece) -> Hashable:
        return None


@dataclass
class HookedReader:
    """A source's reading side."""

    hooks: Hooks
    hidden: int = 0

    def open(self, piece: Piece) -> ParquetRows:
        return self.hooks.open(piece)

    def merge_read(self, file: PhysicalRows, piece: Piece) -> MergedPiece:
        conforming = Conforming(
            self.hooks.physical_columns(piece, file.schema),
            lambda batch, position: self.hooks.conform(batch, piece, position),
            hidden=self.hidden,
            positional=getattr(self.hooks, "positional", False),
        )
        return MergedPiece(file, piece, conforming, self.hooks.removed(piece))

    def alike(self, piece: Piece) -> Hashable:
        return self.hooks.alike(piece)


def read_pieces(
    pieces: Iterable[Piece],
    hooks: Hooks,
    *,
    limit: int | None = None,
    hidden: int = 0,
    **options: Any,
) -> Iterator[pa.RecordBatch]:
    """Read pieces as a source does."""
    read = pieces_of.read_pieces(pieces, HookedReader(hooks, hidden), ReadOptions(**options))
    return read if limit is None else first_rows(read, limit)


def piece_of(path: str, rows: int, size_bytes: int = 1, row_start: int = 0) -> Piece:
    """A range of rows of a file of which nothing else is known."""
    return Piece(FileSlice(path), rows, size_bytes, row_start)
