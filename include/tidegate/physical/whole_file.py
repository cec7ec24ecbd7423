"""A file that may be published as it is, as the reader of a source returns it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from tidegate.model.plan import Piece
    from tidegate.physical.parquet import ParquetRows
    from tidegate.physical.parquet_footer import ParquetFooter


@dataclass(frozen=True, eq=False)
class WholeFile:
    """A Parquet file with exactly the rows of a piece, all of which are read unchanged.

    No delete applies to it, and its columns are not renamed, moved or cast. The caller judges its
    pages, and what the pipeline file does to rows.
    """

    path: str
    """Where its storage has it."""
    footer: ParquetFooter
    columns: tuple[str, ...]
    """All columns of the file, in its order."""
    constants: Mapping[str, pa.Scalar]
    """The output columns that the file does not have, with the value of all its rows."""


def is_whole(piece: Piece, file: ParquetRows) -> bool:
    """Return whether a piece has all rows of its file."""
    if piece.byte_range is None:
        return piece.row_start == 0 and piece.rows == file.rows
    start, end = piece.byte_range
    offsets = [group.offset for group in file.row_groups]
    return all(offset is not None and start <= offset < end for offset in offsets)
