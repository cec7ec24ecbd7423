"""What a table format has to tell of its files, for whoever reads them in a task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from tidegate.model.plan import Piece
    from tidegate.physical.protocol import PhysicalRows
    from tidegate.physical.removed import FileStates
    from tidegate.physical.whole_file import WholeFile


class PieceFormat(Protocol):
    """Turns the physical columns of a file into the columns of the pipeline; used inside tasks."""

    def open(self, piece: Piece) -> PhysicalRows:
        """Open the piece's file.

        Raises:
            SourceFileGone: it was deleted after planning.
            SourceFileDamaged: it is not as long as the plan says.
        """
        ...

    def physical_columns(self, piece: Piece, file_schema: pa.Schema) -> list[str]:
        """Name the top-level columns of the file that `conform` needs."""
        ...

    def removed(self, piece: Piece) -> FileStates:
        """Load what is gone from the piece's file, in the states that are read.

        Raises:
            TidegateError: deletes cannot be read; each kind of source has its own.
        """
        ...

    def conform(self, batch: pa.RecordBatch, piece: Piece, position: int) -> pa.RecordBatch:
        """Give a batch of physical columns the pinned schema: order, types, absent columns.

        Nothing is removed yet; behind the pinned columns stand those that keys need besides.

        Args:
            batch: decoded rows that follow each other in the file.
            piece: which they belong to.
            position: zero-based physical position of the first of them.

        Raises:
            SchemaIncompatible: a column cannot become what the schema says.
        """
        ...

    def whole_file(self, piece: Piece) -> WholeFile | None:
        """Look at the piece's file: whether its rows, all of them, come out as they stand there.

        Raises:
            TidegateError: as `open` and `conform`.
        """
        ...
