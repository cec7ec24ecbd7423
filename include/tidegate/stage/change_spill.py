"""Collect the changes of an upsert, in memory or divided by key over local files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa

from tidegate.physical.arrays import integer_column
from tidegate.read.row_hash import hash_rows
from tidegate.read.upsert import NewestChanges, with_order
from tidegate.storage.refusals import temporary_files
from tidegate.storage.temporary_folder import TemporaryFolder

if TYPE_CHECKING:
    from collections.abc import Sequence


class ChangeSpill:
    """Changes of one partition in content order; a context manager that removes its files.

    Args:
        keys: the columns that identify a row.
        columns: those of published rows.
        memory: bytes; if there are more, all are divided by the hash of their keys, so that each
            part is about as large, and is reduced on its own.
    """

    def __init__(self, keys: Sequence[str], columns: pa.Schema, memory: int) -> None:
        self._keys = keys
        self._schema = with_order(columns)
        self._memory = memory
        self._held: list[pa.RecordBatch] = []
        self._bytes = 0
        self._rows = 0
        self._folder: TemporaryFolder | None = None
        self._files: list[pa.ipc.RecordBatchFileWriter] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._close()
        self._held = []
        if self._folder is not None:
            self._folder.close()

    def append(self, changes: pa.RecordBatch, expected: int) -> None:
        """Add changes.

        Args:
            changes: from `ordered_changes`.
            expected: rows of all changes, from which the number of files follows.
        """
        if self._files:
            self._divide(changes)
            return
        self._held.append(changes)
        self._bytes += changes.nbytes
        self._rows += changes.num_rows
        if self._bytes > self._memory:
            whole = self._bytes * max(expected, self._rows) // max(self._rows, 1)
            self._spill(max(2, -(-whole // self._memory)))

    def newest(self) -> list[NewestChanges]:
        """Return the last change of each key, in sets without a key in common."""
        if self._folder is None:
            return [NewestChanges.of(pa.Table.from_batches(self._held, self._schema), self._keys)]
        self._close()
        return [self._reduced(number) for number in range(len(self._files))]

    def _spill(self, parts: int) -> None:
        with temporary_files():
            self._folder = TemporaryFolder("upsert")
            self._files = [pa.ipc.new_file(self._path(n), self._schema) for n in range(parts)]
        held, self._held = self._held, []
        for changes in held:
            self._divide(changes)

    def _divide(self, changes: pa.RecordBatch) -> None:
        keys = [changes.column(name) for name in self._keys]
        # Not by the remainder: its low bits place the keys inside a part.
        parts = (hash_rows(keys, changes.num_rows) >> np.uint64(32)) % np.uint64(len(self._files))
        order = np.argsort(parts, kind="stable")
        ends = np.cumsum(np.bincount(parts.astype(np.int64), minlength=len(self._files)))
        ordered = changes.take(integer_column(order))
        start = 0
        for file, end in zip(self._files, ends.tolist(), strict=True):
            if end > start:
                with temporary_files():
                    file.write_batch(ordered.slice(start, end - start))
            start = end

    def _reduced(self, number: int) -> NewestChanges:
        """Reduce one part, and leave its rows in a file that is mapped into memory."""
        path = f"{self._path(number)}.newest"
        with temporary_files():
            with pa.memory_map(self._path(number)) as file:
                newest = NewestChanges.of(pa.ipc.open_file(file).read_all(), self._keys)
            with pa.ipc.new_file(path, newest.rows.schema) as written:
                written.write_batch(newest.rows)
            rows = pa.ipc.open_file(pa.memory_map(path)).get_batch(0)
            Path(self._path(number)).unlink()
        return NewestChanges(self._keys, rows, newest.stands)

    def _path(self, number: int) -> str:
        assert self._folder is not None
        return f"{self._folder.path}/{number}"

    def _close(self) -> None:
        for file in self._files:
            with temporary_files():
                file.close()
