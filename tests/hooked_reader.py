"""A source's reading side that a test makes of a few functions, over the real kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from tidegate.model.file_slice import FileSlice
from tidegate.model.plan import Piece
from tidegate.physical import ParquetRows
from tidegate.read.merge import Conforming, MergedPiece, ReadOptions, first_rows
from tidegate.read.open_piece import open_piece
from tidegate.read.removed import WHOLE, FileStates

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Hooks(Protocol):
    """What a test says of its files."""

    def open(self, piece: Piece) -> ParquetRows: ...

    def physical_columns(self, piece: Piece, file_schema: pa.Schema) -> list[str]: ...

    def removed(self, piece: Piece) -> FileStates: ...

    def conform(self, batch: pa.RecordBatch, piece: Piece, position: int) -> pa.RecordBatch: ...


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


@dataclass
class HookedReader:
    """Reads pieces as a source's `SliceReader` does."""

    hooks: Hooks
    hidden: int = 0

    def batches(self, piece: Piece, options: ReadOptions) -> Iterator[pa.RecordBatch]:
        with open_piece(piece, self.hooks.open) as (file, located):
            states = self.hooks.removed(located)
            conforming = Conforming(
                self.hooks.physical_columns(located, file.schema),
                lambda batch, position: self.hooks.conform(batch, located, position),
                hidden=self.hidden,
                positional=getattr(self.hooks, "positional", False),
            )
            yield from MergedPiece(file, located, conforming, states).batches(options)


def read_pieces(
    pieces: Iterable[Piece],
    hooks: Hooks,
    *,
    limit: int | None = None,
    hidden: int = 0,
    **options: Any,
) -> Iterator[pa.RecordBatch]:
    """Read pieces one after the other."""
    reader, wanted = HookedReader(hooks, hidden), ReadOptions(**options)
    read = (batch for piece in pieces for batch in reader.batches(piece, wanted))
    return read if limit is None else first_rows(read, limit)


def piece_of(path: str, rows: int, size_bytes: int = 1, row_start: int = 0) -> Piece:
    """A range of rows of a file of which nothing else is known."""
    return Piece(FileSlice(path), rows, size_bytes, row_start)
