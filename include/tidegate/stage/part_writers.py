"""Keep one open part file per destination, within limits on open files and buffered rows."""

from __future__ import annotations

import posixpath
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa

from tidegate.model.message import EventTimes, PartFile
from tidegate.model.part_format import PARQUET, PartFormat
from tidegate.stage.part_file import PartFileWriter

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.model.partition import Partition
    from tidegate.stage.handing_on import HandedOn


@dataclass(frozen=True)
class Destination:
    """The partition or rule that rows are written for."""

    partition: Partition
    folder: str
    """Relative to the plan's directory."""


@dataclass(frozen=True)
class WriteLimits:
    """The limits at which buffers become row groups, and row groups files."""

    file_bytes: int = 128 << 20
    """A larger file is closed; the size may exceed this by one row group (PC-F08)."""
    small_bytes: int = 32 << 20
    """Uncompressed; rows of a smaller file may be handed on instead."""
    open_files: int = 64
    """If exceeded, the file whose destination least recently received rows is closed."""
    destinations: int = 1 << 12
    """If exceeded, the least recently used one is closed; buffered rows need no file yet."""
    group_rows: int = 1 << 18
    group_bytes: int = 64 << 20
    """Uncompressed; limits row groups of wide rows."""
    buffer_bytes: int = 128 << 20
    """Uncompressed, over all destinations; if exceeded, the largest buffer is written early."""


@dataclass
class _Open:
    """A destination with rows that are not in a closed file yet."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    bytes: int = 0
    file: PartFileWriter | None = None
    path: str = ""
    event_times: EventTimes = field(default_factory=EventTimes)


@dataclass(frozen=True)
class PartShape:
    """How a buffered row group is written to its file."""

    columns: tuple[str, ...]
    """Columns of the file; others only serve to measure."""
    measure: Callable[[pa.RecordBatch], EventTimes]
    """Row group → bounds of its event times."""
    form: PartFormat = PARQUET


class PartWriters:
    """The open part files of one attempt.

    *Runs on:* the task of a split. *Failure:* files stay in the attempt directory, where no message
    names them; `abandon` closes the open ones.

    Args:
        open_file: opens a new file by its path relative to the plan's directory.
        name: returns the final name of a destination's n-th file, from 0.
        shape: which columns are written, and how rows are measured.
        limits: when to write and close.
        handed_on: takes rows that would be a small file; None: each is written.
    """

    def __init__(
        self,
        open_file: Callable[[str], BinaryIO],
        name: Callable[[int], str],
        shape: PartShape,
        limits: WriteLimits,
        handed_on: HandedOn | None = None,
    ) -> None:
        self._open_file = open_file
        self._name = name
        self._shape = shape
        self._limits = limits
        self._handed_on = handed_on
        self._open: OrderedDict[Destination, _Open] = OrderedDict()
        self._begun: Counter[Destination] = Counter()
        self._buffered = 0
        self._closed: dict[Destination, list[PartFile]] = {}

    def append(self, to: Destination, rows: pa.RecordBatch) -> None:
        """Append rows to a destination, in the order in which they are written.

        Args:
            to: the destination.
            rows: at least one, in memory that no other destination shares.
        """
        part = self._opened(to)
        start = 0
        # Groups are cut at an exact row: their bytes must not depend on the sizes of the batches.
        while start < rows.num_rows:
            taken = rows.slice(start, self._limits.group_rows - part.rows)
            start += taken.num_rows
            self._buffer(part, taken)
            if part.rows >= self._limits.group_rows or part.bytes >= self._limits.group_bytes:
                self._write_group(to, part)
        while self._buffered > self._limits.buffer_bytes:
            self._make_memory()

    def adopt(self, to: Destination, make: Callable[[str], PartFile]) -> None:
        """Count a file that the caller makes under the name of a destination's next file.

        Args:
            to: the destination of the file.
            make: makes the file at a path relative to the plan's directory, and describes it.
        """
        self._closed.setdefault(to, []).append(make(self._next_path(to)))

    def close(self) -> tuple[PartFile, ...]:
        """Finish every file.

        Returns:
            All files of the attempt, by folder, then in the order in which they were begun.
        """
        while self._open:
            self._close(next(iter(self._open)))
        folders = sorted(self._closed, key=lambda item: item.folder)
        return tuple(part for to in folders for part in self._closed[to])

    def abandon(self) -> None:
        """Close the open files without finishing them."""
        for part in self._open.values():
            if part.file is not None:
                part.file.abandon()
        self._open.clear()

    def _opened(self, to: Destination) -> _Open:
        if to in self._open:
            self._open.move_to_end(to)
            return self._open[to]
        if len(self._open) >= self._limits.destinations:
            self._close(next(iter(self._open)))
        return self._open.setdefault(to, _Open())

    def _make_memory(self) -> None:
        """Hand on what would be small files, or else write the largest buffer early."""
        handed_on = [to for to, part in self._open.items() if self._hand_on(to, part)]
        for to in handed_on:
            del self._open[to]
        if not handed_on:
            largest = max(self._open, key=lambda item: self._open[item].bytes)
            self._write_group(largest, self._open[largest])

    def _hand_on(self, to: Destination, part: _Open) -> bool:
        """Hand on rows that would be a small file, of a destination that is forgotten then.

        Returns:
            Whether they were taken.
        """
        if self._handed_on is None or part.file is not None or not part.batches:
            return False
        if part.bytes >= self._limits.small_bytes:
            return False
        if not self._handed_on.take(to.partition, part.batches):
            return False
        self._buffered -= part.bytes
        return True

    def _close(self, to: Destination) -> None:
        part = self._open[to]
        if part.batches and not self._hand_on(to, part):
            self._write_group(to, part)
        if part.file is not None:
            self._finish(to, part)
        del self._open[to]

    def _buffer(self, part: _Open, rows: pa.RecordBatch) -> None:
        size = rows.nbytes
        part.batches.append(rows)
        part.rows += rows.num_rows
        part.bytes += size
        self._buffered += size

    def _write_group(self, to: Destination, part: _Open) -> None:
        """Write the buffer of a destination; open its file first, and roll it if it is large."""
        group = pa.concat_batches(part.batches)
        self._buffered -= part.bytes
        part.batches, part.rows, part.bytes = [], 0, 0
        written = group.select(self._shape.columns)
        if part.file is None:
            self._make_room()
            part.path = self._next_path(to)
            part.file = PartFileWriter(self._open_file(part.path), written, self._shape.form)
        part.file.write(written)
        part.event_times = part.event_times.merged(self._shape.measure(group))
        if part.file.target.length > self._limits.file_bytes:
            self._finish(to, part)

    def _next_path(self, to: Destination) -> str:
        path = f"{to.folder}/{self._name(self._begun[to])}"
        self._begun[to] += 1
        return path

    def _make_room(self) -> None:
        """Close the least recently used file if there are too many."""
        with_file = [to for to, part in self._open.items() if part.file is not None]
        if len(with_file) >= self._limits.open_files:
            self._close(with_file[0])

    def _finish(self, to: Destination, part: _Open) -> None:
        file, part.file = part.file, None
        if file is None:
            return
        file.close()
        closed = PartFile(
            partition=to.partition,
            name=posixpath.basename(part.path),
            staged=part.path,
            length=file.target.length,
            sha256=file.target.sha256,
            rows=file.rows,
            event_times=part.event_times,
        )
        part.event_times = EventTimes()
        self._closed.setdefault(to, []).append(closed)
