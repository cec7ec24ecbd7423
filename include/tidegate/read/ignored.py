"""Count deletes that hit nothing while pieces are read (ICE-4.10)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tidegate.model.ignored_deletes import IgnoredDeletes
from tidegate.read.positions import past_end

if TYPE_CHECKING:
    import pyarrow as pa

    from tidegate.model.plan import Piece
    from tidegate.physical import PhysicalRows
    from tidegate.physical.piece_format import PieceFormat
    from tidegate.physical.removed import FileStates, Removed
    from tidegate.physical.whole_file import WholeFile

_LOG = logging.getLogger(__name__)


class CountingFormat:
    """A format that counts; used by one thread at a time, one piece after the other.

    Between two states only what the later one added counts: the rest was told when it came.
    """

    def __init__(self, inner: PieceFormat) -> None:
        self._inner = inner
        self._file_rows = 0
        self.ignored = IgnoredDeletes()

    def open(self, piece: Piece) -> PhysicalRows:
        """Open the piece's file."""
        file = self._inner.open(piece)
        self._file_rows = file.rows
        return file

    def physical_columns(self, piece: Piece, file_schema: pa.Schema) -> list[str]:
        """Name the columns of the file that `conform` needs."""
        return self._inner.physical_columns(piece, file_schema)

    def removed(self, piece: Piece) -> FileStates:
        """Load what is gone from the piece's file, and count what is not there."""
        sides = self._inner.removed(piece)
        self._count(piece, sides)
        return sides

    def conform(self, batch: pa.RecordBatch, piece: Piece, position: int) -> pa.RecordBatch:
        """Give a batch of physical columns the pinned schema."""
        return self._inner.conform(batch, piece, position)

    def whole_file(self, piece: Piece) -> WholeFile | None:
        """Look at the piece's file; where it is whole there are no deletes to count."""
        return self._inner.whole_file(piece)

    def _count(self, piece: Piece, sides: FileStates) -> None:
        before, after = sides.before, sides.after
        if after is None:
            return
        past = 0
        if piece.rows and piece.row_start == 0:
            # A file in several pieces has these positions once.
            past = max(0, self._past_end(after) - self._past_end(before))
        known = before.unaddressed if before is not None else {}
        new = {path: rows for path, rows in after.unaddressed.items() if path not in known}
        if past:
            _LOG.info("%s: %s deleted positions past its end delete nothing", piece.path, past)
        if past or new:
            self.ignored = self.ignored.plus(IgnoredDeletes(past, new))

    def _past_end(self, removed: Removed | None) -> int:
        return past_end(removed.positions, self._file_rows) if removed is not None else 0
