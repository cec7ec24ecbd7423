"""Keep one open part file per destination, within limits on open files and buffered rows.

Rows beyond these limits, and rows that are sorted, wait in a temporary file, and are written one
destination after the other when all rows are there (PC-F07). A destination therefore has as few
files as their size allows, however its rows arrive.
"""

from __future__ import annotations

import posixpath
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa

from tidegate.model.message import EventTimes, PartFile
from tidegate.model.part_format import PARQUET, PartFormat
from tidegate.read.sorted_rows import RowOrder
from tidegate.stage.part_file import PartFileWriter
from tidegate.stage.waiting_rows import WaitingRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tidegate.model.partition import Partition
    from tidegate.model.upload import Upload
    from tidegate.stage.handing_on import HandedOn
    from tidegate.stage.waiting_rows import Run


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
    """If as many are open, rows of further destinations wait."""
    destinations: int = 1 << 12
    """If more have rows in memory, those of the least recently used one wait."""
    group_rows: int = 1 << 18
    group_bytes: int = 64 << 20
    """Uncompressed; limits row groups of wide rows, and what is sorted at once."""
    buffer_bytes: int = 128 << 20
    """Uncompressed, over all destinations; if exceeded, the largest buffers are written early if
    they are large, and wait otherwise."""
    early_bytes: int = 8 << 20
    """Uncompressed; smaller buffers are not worth a row group of their own."""


@dataclass
class _Open:
    """A destination with rows in memory or an open file."""

    waiting: list[Run] = field(default_factory=list)
    """Its rows before those in memory."""
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
    order: RowOrder = field(default_factory=RowOrder)
    """The order of the rows in a file."""


class PartWriters:
    """The open part files of one attempt.

    *Runs on:* the task of a split. *Failure:* files stay in the attempt directory, where no message
    names them; `abandon` closes the open ones. Rows that wait are lost with the process.

    Args:
        open_file: opens a new file for a destination, by its path relative to the plan's directory.
        name: returns the final name of a destination's n-th file, from 0.
        shape: which columns are written, and how rows are measured.
        limits: when to write and close.
        handed_on: takes rows that would be a small file; None: each is written.
    """

    def __init__(
        self,
        open_file: Callable[[Destination, str], BinaryIO],
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
        self._waiting: dict[Destination, list[Run]] = {}
        """Destinations whose rows all wait."""
        self._aside = WaitingRows(shape.order)
        self._files = 0
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
        if self._shape.order:
            self._buffer(part, rows)
            if part.bytes >= self._limits.group_bytes:
                self._set_aside(part)
        else:
            for _ in self._groups(part, rows):
                self._write_or_set_aside(to, part)
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
        # Those with an open file first: the others need one each.
        for to in sorted(self._open, key=lambda item: self._open[item].file is None):
            self._close(to)
        for to in list(self._waiting):
            self._close(to)
        self._aside.close()
        folders = sorted(self._closed, key=lambda item: item.folder)
        return tuple(part for to in folders for part in self._closed[to])

    @property
    def sent(self) -> tuple[Upload, ...]:
        """What was sent of the finished files, and nobody has completed."""
        closed = (part for parts in self._closed.values() for part in parts)
        return tuple(part.upload for part in closed if part.upload is not None)

    def abandon(self) -> None:
        """Close the open files without finishing them."""
        for part in self._open.values():
            if part.file is not None:
                part.file.abandon()
        self._open.clear()
        self._aside.close()

    def _opened(self, to: Destination) -> _Open:
        if to in self._open:
            self._open.move_to_end(to)
            return self._open[to]
        # One more than files, so that there is one without a file.
        if len(self._open) >= max(self._limits.destinations, self._limits.open_files + 1):
            self._forget_one()
        return self._open.setdefault(to, _Open(self._waiting.pop(to, [])))

    def _forget_one(self) -> None:
        """Hand on or set aside the rows of the least recently used destination without a file."""
        to = next(to for to, part in self._open.items() if part.file is None)
        if self._hand_on(to, self._open[to]):
            del self._open[to]
        else:
            self._retire(to)

    def _make_memory(self) -> None:
        """Hand on what would be small files; or write the largest buffer early; or set aside."""
        handed_on = [to for to, part in self._open.items() if self._hand_on(to, part)]
        for to in handed_on:
            del self._open[to]
        if handed_on:
            return
        by_size = sorted(self._open, key=lambda item: self._open[item].bytes, reverse=True)
        largest = self._open[by_size[0]]
        if (
            largest.bytes >= self._limits.early_bytes
            and not largest.waiting
            and self._may_write(largest)
        ):
            self._write_group(by_size[0], largest)
            return
        # Many at once, because it takes time to find them.
        for to in by_size:
            if self._buffered * 2 <= self._limits.buffer_bytes:
                return
            self._retire(to)

    def _may_write(self, part: _Open) -> bool:
        """Return whether rows may be written although more of their destination may come."""
        has_place = part.file is not None or self._files < self._limits.open_files
        return has_place and not self._shape.order

    def _hand_on(self, to: Destination, part: _Open) -> bool:
        """Hand on rows that would be a small file, of a destination that is forgotten then.

        Returns:
            Whether they were taken.
        """
        if self._handed_on is None or part.file is not None or part.waiting or not part.batches:
            return False
        if part.bytes >= self._limits.small_bytes:
            return False
        if not self._handed_on.take(to.partition, part.batches):
            return False
        self._buffered -= part.bytes
        return True

    def _write_or_set_aside(self, to: Destination, part: _Open) -> None:
        if not self._may_write(part):
            self._set_aside(part)
        elif part.waiting:
            self._write_waiting(to, part)
        else:
            self._write_group(to, part)

    def _retire(self, to: Destination) -> None:
        """Let the rows of a destination wait; forget it unless it has an open file."""
        part = self._open[to]
        self._set_aside(part)
        if part.file is None:
            self._waiting[to] = self._open.pop(to).waiting

    def _set_aside(self, part: _Open) -> None:
        """Let the buffer of a destination wait, sorted."""
        if part.batches:
            part.waiting.append(self._aside.add(self._unbuffer(part)))

    def _close(self, to: Destination) -> None:
        """Write everything that is left of a destination."""
        part = self._open.setdefault(to, _Open(self._waiting.pop(to, [])))
        if self._hand_on(to, part):
            del self._open[to]
            return
        if part.waiting:
            self._write_waiting(to, part)
        elif self._shape.order and part.batches:
            self._write_groups(to, part, [self._shape.order.sorted(self._unbuffer(part))])
        if part.batches:
            self._write_group(to, part)
        if part.file is not None:
            self._finish(to, part)
        del self._open[to]

    def _write_waiting(self, to: Destination, part: _Open) -> None:
        """Write what waits and the buffer, except for the last rows that are no row group."""
        self._set_aside(part)
        waiting, part.waiting = part.waiting, []
        self._write_groups(to, part, self._aside.in_order(waiting))

    def _write_groups(
        self, to: Destination, part: _Open, batches: Iterable[pa.RecordBatch]
    ) -> None:
        for rows in batches:
            for _ in self._groups(part, rows):
                self._write_group(to, part)

    def _groups(self, part: _Open, rows: pa.RecordBatch) -> Iterator[None]:
        """Buffer rows, and stop whenever they are a row group, which has to leave the buffer."""
        start = 0
        # Groups are cut at an exact row: their bytes must not depend on the sizes of the batches.
        while start < rows.num_rows:
            taken = rows.slice(start, self._limits.group_rows - part.rows)
            start += taken.num_rows
            self._buffer(part, taken)
            if part.rows >= self._limits.group_rows or part.bytes >= self._limits.group_bytes:
                yield

    def _buffer(self, part: _Open, rows: pa.RecordBatch) -> None:
        size = rows.nbytes
        part.batches.append(rows)
        part.rows += rows.num_rows
        part.bytes += size
        self._buffered += size

    def _unbuffer(self, part: _Open) -> pa.RecordBatch:
        """Take the buffer of a destination out of memory."""
        rows = pa.concat_batches(part.batches)
        self._buffered -= part.bytes
        part.batches, part.rows, part.bytes = [], 0, 0
        return rows

    def _write_group(self, to: Destination, part: _Open) -> None:
        """Write the buffer of a destination; open its file first, and roll it if it is large."""
        group = self._unbuffer(part)
        written = group.select(self._shape.columns)
        if part.file is None:
            part.path = self._next_path(to)
            part.file = PartFileWriter(self._open_file(to, part.path), written, self._shape.form)
            self._files += 1
        part.file.write(written)
        part.event_times = part.event_times.merged(self._shape.measure(group))
        if part.file.target.length > self._limits.file_bytes:
            self._finish(to, part)

    def _next_path(self, to: Destination) -> str:
        path = f"{to.folder}/{self._name(self._begun[to])}"
        self._begun[to] += 1
        return path

    def _finish(self, to: Destination, part: _Open) -> None:
        file, part.file = part.file, None
        if file is None:
            return
        self._files -= 1
        file.close()
        closed = PartFile(
            partition=to.partition,
            name=posixpath.basename(part.path),
            staged=part.path,
            length=file.target.length,
            sha256=file.target.sha256,
            rows=file.rows,
            event_times=part.event_times,
            upload=file.target.upload,
        )
        part.event_times = EventTimes()
        self._closed.setdefault(to, []).append(closed)
