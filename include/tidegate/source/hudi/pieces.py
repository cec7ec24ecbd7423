"""Make the pieces of a plan from slices: opens the footers of base files.

Where a service may have written rows anew, it also reads their commit times.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors import HudiCommitTimesLost
from tidegate.model.file_slice import Delta, DeltaKind, FileSlice
from tidegate.model.plan import Piece
from tidegate.physical import RowGroup
from tidegate.physical.opening import open_rows
from tidegate.read.open_piece import damage_named
from tidegate.source.hudi.slices.commit_times import rewriter
from tidegate.source.hudi.slices.details import BLOCKS, LOG_ONLY, SliceDetails
from tidegate.source.hudi.slices.names import LogFile

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidegate.model.file_slice import Deltas
    from tidegate.physical import PhysicalRows
    from tidegate.source.hudi.files import TableFiles
    from tidegate.source.hudi.slices.file_groups import Slice
    from tidegate.source.hudi.slices.listing import FolderFiles
    from tidegate.source.hudi.slices.names import BaseFile
    from tidegate.source.hudi.slices.window_slices import Touched

_THREADS = 16
_LOG_BYTES_PER_ROW = 100
"""Bytes of a log for one record, to guess how many a slice without a base file has."""
_KINDS = {"log": DeltaKind.LOG, "deletes": DeltaKind.LOG, "cdc": DeltaKind.CHANGES}


@dataclass(frozen=True)
class SliceRead:
    """A slice, and what a task has to know to read it."""

    slice: Slice
    details: SliceDetails
    others: Deltas = ()
    """Files that are read besides those of the slice."""
    services: frozenset[str] = frozenset()
    """The services that may have moved rows of the window, by their requested times."""


class PieceMaker:
    """Makes the pieces of one table."""

    def __init__(self, files: TableFiles) -> None:
        """Prepare."""
        self._files = files

    def pieces(self, reads: Iterable[SliceRead]) -> tuple[Piece, ...]:
        """Return one piece for each slice, in their order; footers are read side by side.

        Raises:
            HudiCommitTimesLost: a service wrote rows of a window with its own commit time.
        """
        with ThreadPoolExecutor(_THREADS) as pool:
            return tuple(pool.map(self._piece, reads))

    def row_groups(self, piece: Piece) -> tuple[RowGroup, ...]:
        """Read the row groups of a base file; a slice of logs only is one group."""
        if piece.slice.file_format == LOG_ONLY:
            return (RowGroup(piece.rows, piece.size_bytes),)
        with damage_named(piece.path), self._open(piece.slice) as file:
            return file.row_groups

    def history(self, slice: Slice, touched: Touched, folders: FolderFiles) -> Deltas:
        """Return the logs of a window whose records are part of base files by now (HUDI-F13)."""
        moved = (
            file
            for group in sorted(touched.origins.get(slice.group, ()))
            for file in folders.of_group(slice.partition, group)
            if isinstance(file, LogFile) and file.kind != "cdc"
        )
        return tuple(
            self._log(log, kind)
            for kind, logs in ((DeltaKind.HISTORY, slice.history), (DeltaKind.MOVED, moved))
            for log in logs
            if log.name in touched.files
        )

    def base(self, base: BaseFile, kind: DeltaKind) -> Delta:
        """Return a base file that is read besides those of the slice."""
        path, size = self._files.path(base.path), base.size_bytes
        return Delta(path, kind, base.file_format, size, rows=0, sequence=0)

    def _piece(self, read: SliceRead) -> Piece:
        slice, details = read.slice, dict(read.details)
        logs = (*(self._log(log, _KINDS[log.kind]) for log in slice.logs), *read.others)
        if slice.base is None:
            size = sum(log.size_bytes for log in slice.logs)
            first = logs[0]
            rows = details["numbers"] = max(1, size // _LOG_BYTES_PER_ROW)
            only_logs = FileSlice(
                first.path, LOG_ONLY, first.file_bytes, deltas=logs, details=details
            )
            return Piece(only_logs, rows, first.file_bytes)
        base = FileSlice(
            self._files.path(slice.base.path),
            slice.base.file_format,
            slice.base.size_bytes,
            deltas=logs,
            details=details,
        )
        with damage_named(base.path), self._open(base) as file:
            rows = file.rows
            by = rewriter(file, read.services)
        if by is not None:
            raise HudiCommitTimesLost(path=base.path, service=by)
        return Piece(base, rows, base.file_bytes)

    def _log(self, log: LogFile, kind: DeltaKind) -> Delta:
        path = self._files.path(log.path)
        return Delta(path, kind, log.file_format or BLOCKS, log.size_bytes, rows=0, sequence=0)

    def _open(self, slice: FileSlice) -> PhysicalRows:
        file = self._files.open(self._files.below(slice.path))
        return open_rows(file, slice.file_format)
