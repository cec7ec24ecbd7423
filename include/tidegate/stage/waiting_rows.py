"""Keep rows that wait to be written in one temporary file, sorted if their part files are.

*Failure:* the file has no name, so that the system removes it with the process, however that ends.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from tidegate.physical.arrays import integer_column
from tidegate.read.sorted_rows import RowOrder, merge_runs
from tidegate.storage.refusals import temporary_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from io import FileIO

_BLOCK_BYTES = 1 << 20
"""Uncompressed; a merge holds one or two blocks of each run."""
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)


@dataclass(frozen=True, eq=False)
class WaitingBlock:
    """Consecutive rows in the file."""

    file: FileIO
    offset: int
    length: int
    first: pa.RecordBatch
    """What decides the order of the first row."""

    def read(self) -> pa.RecordBatch:
        """Return the rows."""
        content = os.pread(self.file.fileno(), self.length, self.offset)
        return pa.ipc.open_stream(content).read_next_batch()


Run = tuple[WaitingBlock, ...]
"""Rows that were added together, in their order."""


class WaitingRows:
    """The rows of one attempt that wait, of all its destinations.

    The file lies in the folder for temporary files (`TMPDIR`), and is created with the first row.

    Args:
        order: the order of the rows in part files; if there is none, that in which they are added.
    """

    def __init__(self, order: RowOrder) -> None:
        self._order = order
        self._file: FileIO | None = None
        self._length = 0

    def add(self, rows: pa.RecordBatch) -> Run:
        """Sort rows and write them.

        Args:
            rows: at least one; they fit in memory twice.

        Raises:
            StorageFull: no space is left (Transient).
        """
        if self._order:
            rows = self._order.sorted(rows)
        step = max(1, rows.num_rows * _BLOCK_BYTES // max(rows.nbytes, 1))
        starts = range(0, rows.num_rows, step)
        return tuple(self._write(rows.slice(start, step)) for start in starts)

    def in_order(self, runs: Iterable[Run]) -> Iterator[pa.RecordBatch]:
        """Read rows of one destination in the order in which they are written.

        Args:
            runs: in the order in which they were added.
        """
        if self._order:
            return merge_runs(runs, self._order)
        return (block.read() for run in runs for block in run)

    def close(self) -> None:
        """Give up the rows."""
        if self._file is not None:
            self._file.close()

    def _write(self, block: pa.RecordBatch) -> WaitingBlock:
        written = pa.BufferOutputStream()
        # A stream of its own, because the dictionaries of two blocks may differ.
        with pa.ipc.new_stream(written, block.schema, options=_OPTIONS) as stream:
            stream.write_batch(block)
        content = memoryview(written.getvalue())
        file, offset = self._opened(), self._length
        with temporary_files():
            while content:
                content = content[file.write(content) :]
        self._length += len(written.getvalue())
        # A slice would keep the whole block in memory.
        first = self._order.values(block.take(integer_column(np.zeros(1, dtype=np.int64))))
        return WaitingBlock(file, offset, self._length - offset, first)

    def _opened(self) -> FileIO:
        if self._file is None:
            with temporary_files():
                # Closed with the attempt.
                self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        return self._file
