"""Make the pieces of a plan from slices: opens the footers of base files, and nothing else."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.model.file_slice import Delta, DeltaKind, FileSlice
from tidegate.model.plan import Piece
from tidegate.physical import RowGroup
from tidegate.physical.opening import open_rows
from tidegate.read.open_piece import damage_named
from tidegate.source.hudi.slices.details import LOG_ONLY, SliceDetails

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidegate.model.file_slice import Deltas
    from tidegate.physical import PhysicalRows
    from tidegate.source.hudi.files import TableFiles
    from tidegate.source.hudi.slices.file_groups import Slice
    from tidegate.source.hudi.slices.names import BaseFile, LogFile
    from tidegate.source.hudi.slices.window_slices import Touched

_THREADS = 16
_LOG_BYTES_PER_ROW = 100
"""Bytes of a log for one record, to guess how many a slice without a base file has."""


@dataclass(frozen=True)
class SliceRead:
    """A slice, and what a task has to know to read it."""

    slice: Slice
    details: SliceDetails
    others: Deltas = ()
    """Files that are read besides those of the slice."""


class PieceMaker:
    """Makes the pieces of one table."""

    def __init__(self, files: TableFiles) -> None:
        """Prepare."""
        self._files = files

    def pieces(self, reads: Iterable[SliceRead]) -> tuple[Piece, ...]:
        """Return one piece for each slice, in their order; footers are read side by side."""
        with ThreadPoolExecutor(_THREADS) as pool:
            return tuple(pool.map(self._piece, reads))

    def row_groups(self, piece: Piece) -> tuple[RowGroup, ...]:
        """Read the row groups of a base file; a slice of logs only is one group."""
        if piece.slice.file_format == LOG_ONLY:
            return (RowGroup(piece.rows, piece.size_bytes),)
        with damage_named(piece.path), self._open(piece.slice) as file:
            return file.row_groups

    def history(self, slice: Slice, touched: Touched) -> Deltas:
        """Return the logs of a window that belong to other slices by now (HUDI-F13)."""
        return tuple(
            self._log(log, DeltaKind.HISTORY)
            for log in slice.history
            if log.path.rpartition("/")[2] in touched.files
        )

    def previous(self, base: BaseFile) -> Delta:
        """Return the base file that stood before (HUDI-R6)."""
        path, size = self._files.path(base.path), base.size_bytes
        return Delta(path, DeltaKind.PREVIOUS, base.file_format, size, rows=0, sequence=0)

    def _piece(self, read: SliceRead) -> Piece:
        slice, details = read.slice, dict(read.details)
        logs = (*(self._log(log, DeltaKind.LOG) for log in slice.logs), *read.others)
        if slice.base is None:
            size = sum(log.size_bytes for log in slice.logs)
            first = logs[0]
            only_logs = FileSlice(
                first.path, LOG_ONLY, first.file_bytes, deltas=logs, details=details
            )
            return Piece(only_logs, max(1, size // _LOG_BYTES_PER_ROW), first.file_bytes)
        base = FileSlice(
            self._files.path(slice.base.path),
            slice.base.file_format,
            slice.base.size_bytes,
            deltas=logs,
            details=details,
        )
        with damage_named(base.path), self._open(base) as file:
            rows = file.rows
        return Piece(base, rows, base.file_bytes)

    def _log(self, log: LogFile, kind: DeltaKind) -> Delta:
        path = self._files.path(log.path)
        return Delta(path, kind, "log", log.size_bytes, rows=0, sequence=0)

    def _open(self, slice: FileSlice) -> PhysicalRows:
        below = slice.path.removeprefix(self._files.root).lstrip("/")
        return open_rows(self._files.open(below), slice.file_format)
