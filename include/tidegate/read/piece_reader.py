"""Read ranges of physical rows of Parquet files as bounded batches in the pipeline's schema.

Knows no table format: what the columns of a file mean is told by a `PieceFormat`. Merges nothing.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.errors import SourceFileDamaged, SourceFileGone, StorageDenied, TidegateError
from tidegate.read.pushed_filter import STOPPED, can_push, filtered_batches, pass_unchanged

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidegate.model.plan import Piece
    from tidegate.predicate import Predicate

_LOG = logging.getLogger(__name__)

BATCH_ROWS = 131_072
"""Most rows decoded at a time; a tenth less CPU than the 65,536 of ICE-6.2, measured."""
_BATCH_BYTES = 32 << 20
"""Most bytes decoded at a time, by the footer; bounds memory where rows are wide (ICE-6.2)."""


class PieceFormat(Protocol):
    """What reading needs to know of a table format, bound to one pinned schema."""

    def open_input(self, piece: Piece) -> pa.NativeFile:
        """Open the piece's file for random access."""
        ...

    def physical_columns(self, piece: Piece, file_schema: pa.Schema) -> list[str]:
        """Name the columns of the file that `conform` needs; no others are decoded."""
        ...

    def conform(self, batch: pa.RecordBatch, piece: Piece) -> pa.RecordBatch:
        """Give a batch of physical columns the pinned schema."""
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
    """
    for piece in pieces:
        try:
            with format.open_input(piece) as file:
                yield from _OpenPiece(file, piece, format).read(filter, batch_rows)
        except TidegateError:
            raise
        except FileNotFoundError as gone:
            raise SourceFileGone(path=piece.path) from gone
        except PermissionError as denied:
            raise StorageDenied(path=piece.path, problem=str(denied)) from denied
        except (OSError, pa.ArrowException) as damaged:
            raise SourceFileDamaged(path=piece.path, problem=str(damaged).strip()) from damaged


class _OpenPiece:
    """One piece while its file is open."""

    def __init__(self, file: pa.NativeFile, piece: Piece, format: PieceFormat) -> None:
        self._file = file
        self._piece = piece
        self._format = format
        # Buffering ahead would hold whole row groups of compressed bytes (ICE-6.2).
        self._parquet = pq.ParquetFile(file, pre_buffer=False)
        self._groups, self._position = _row_groups_in_range(self._parquet.metadata, piece)
        self._columns = format.physical_columns(piece, self._parquet.schema_arrow)

    def read(self, filter: Predicate | None, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Give the piece's rows that pass, in batches of at least one row."""
        if not self._groups:
            return
        size = min(batch_rows, _rows_of_bytes(self._parquet.metadata, self._groups, self._columns))
        done = 0
        if filter is not None and self._can_push(filter):
            try:
                for batch in self._pushed(filter, size):
                    done += batch.num_rows
                    yield batch
            except STOPPED as stopped:
                # The plain way goes on behind the rows that were given, and knows what is wrong.
                _LOG.info("%s: no pushed filter after %s rows: %s", self._piece.path, done, stopped)
            else:
                return
        for batch in self._plain(size):
            passing = batch if filter is None else batch.filter(filter.mask(batch))
            known = min(done, passing.num_rows)
            done -= known
            if passing.num_rows > known:
                yield passing.slice(known) if known else passing

    def _can_push(self, filter: Predicate) -> bool:
        if not can_push(self._file, self._parquet, self._columns):
            return False
        probe = next(self._parquet.iter_batches(1, self._groups[:1], self._columns, False))
        conformed = self._format.conform(probe, self._piece)
        return pass_unchanged(filter.columns, probe, conformed)

    def _pushed(self, filter: Predicate, size: int) -> Iterator[pa.RecordBatch]:
        fields = [self._parquet.schema_arrow.field(name) for name in self._columns]
        for batch in filtered_batches(self._file, self._piece, pa.schema(fields), filter, size):
            yield self._format.conform(batch, self._piece)

    def _plain(self, size: int) -> Iterator[pa.RecordBatch]:
        """Decode the row groups that the range touches, slice what they have too much (ICE-6.3)."""
        position, piece = self._position, self._piece
        for batch in self._parquet.iter_batches(size, self._groups, self._columns, False):
            start = max(piece.row_start - position, 0)
            stop = min(piece.row_end - position, batch.num_rows)
            position += batch.num_rows
            if start < stop:
                whole = stop - start == batch.num_rows
                yield self._format.conform(
                    batch if whole else batch.slice(start, stop - start), piece
                )
            if position >= piece.row_end:
                return


def _row_groups_in_range(metadata: pq.FileMetaData, piece: Piece) -> tuple[list[int], int]:
    """Pick the row groups that a piece touches, and the physical position where they begin.

    Raises:
        SourceFileDamaged: the file has fewer rows than the plan says.
    """
    if metadata.num_rows < piece.row_end:
        raise SourceFileDamaged(
            path=piece.path,
            problem=f"expected at least {piece.row_end} rows, found {metadata.num_rows}",
        )
    groups: list[int] = []
    first_position = position = 0
    for index in range(metadata.num_row_groups):
        rows = metadata.row_group(index).num_rows
        if position < piece.row_end and position + rows > piece.row_start:
            if not groups:
                first_position = position
            groups.append(index)
        position += rows
    return groups, first_position


def _rows_of_bytes(metadata: pq.FileMetaData, groups: list[int], columns: list[str]) -> int:
    """Say how many rows of the wanted columns have `_BATCH_BYTES`, judged by one group."""
    group = metadata.row_group(groups[0])
    wanted = set(columns)
    chunks = (group.column(index) for index in range(group.num_columns))
    size = sum(
        chunk.total_uncompressed_size
        for chunk in chunks
        if chunk.path_in_schema in wanted or chunk.path_in_schema.partition(".")[0] in wanted
    )
    return max(1, _BATCH_BYTES * group.num_rows // size) if size else BATCH_ROWS
