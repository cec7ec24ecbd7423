"""Load the log records of a slice, merged by key."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tidegate.errors import HudiPartialRecords, SourceFileDamaged
from tidegate.model.file_slice import DeltaKind
from tidegate.read.keyed_merge import newest_of_each_key
from tidegate.read.open_piece import damage_named
from tidegate.source.hudi.logs.blocks import BlockType, read_blocks
from tidegate.source.hudi.logs.counting import counted_blocks
from tidegate.source.hudi.logs.decoding import decode_deletes, decode_records
from tidegate.source.hudi.merge.records import data_records, delete_records, joined_records
from tidegate.source.hudi.slices.details import details_of
from tidegate.source.hudi.table.merge_rules import Filling, MergeMode
from tidegate.source.hudi.table.promotion import widened
from tidegate.source.named_columns import found_column
from tidegate.source.projection import Projection

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from tidegate.model.file_slice import Delta, FileSlice
    from tidegate.read.keyed_merge import KeyedRecords
    from tidegate.source.column_kernels import Wanted
    from tidegate.source.hudi.files import TableFiles
    from tidegate.source.hudi.logs.blocks import Block
    from tidegate.source.hudi.logs.counting import Gate
    from tidegate.source.hudi.table.columns import KeyedBy

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class InstantGate:
    """Admits blocks of instants that were done in a state (HUDI-M2)."""

    first_active: str
    """Older instants are archived, and so done."""
    done: Mapping[str, str]
    """Requested time → completion time."""
    until: tuple[str, str]

    def admits(self, instant: str) -> bool:
        """Return whether the instant is done, and visible."""
        completed = self.done.get(instant)
        if completed is None:
            return instant < self.first_active
        return (completed, instant) <= self.until


@dataclass(frozen=True)
class EveryBlock:
    """Admits every block: the plan names only files of visible instants (HUDI-F4)."""

    def admits(self, instant: str) -> bool:
        """Return True."""
        del instant
        return True


class LogRecords:
    """Loads the log records of slices; keeps those of the last one."""

    def __init__(self, files: TableFiles, by: KeyedBy) -> None:
        """Prepare.

        Args:
            files: of the table.
            by: how its rows are keyed.
        """
        self._files = files
        self._by = by
        self._last: tuple[object, KeyedRecords] | None = None

    def merged(
        self,
        slice: FileSlice,
        gate: Gate,
        wanted: Sequence[Wanted],
        *,
        only: Collection[str] | None = None,
    ) -> KeyedRecords:
        """Read the logs of a slice, and merge their records among themselves.

        Args:
            slice: with its logs as deltas.
            gate: tells which instants are visible.
            wanted: the columns that are read.
            only: if given, only records of these instants are read.

        Raises:
            HudiPartialRecords: records of the window have only some columns, and what was there
                before is not read (HUDI-R4).
            TidegateError: a log is gone, damaged, or has something that is not read.
        """
        asked = (slice, [column.name for column in wanted], only)
        if self._last is None or self._last[0] != asked:
            self._last = asked, self._read(slice, gate, wanted, only)
        return self._last[1]

    def _read(
        self,
        slice: FileSlice,
        gate: Gate,
        wanted: Sequence[Wanted],
        only: Collection[str] | None,
    ) -> KeyedRecords:
        instants = frozenset(details_of(slice).get("instants", ()))
        logs = [delta for delta in slice.deltas if delta.kind is DeltaKind.LOG]
        counted = counted_blocks(self._blocks(logs), gate, only, originals=bool(instants))
        partial = next((block for block in counted.blocks if block.is_partial), None)
        if partial is not None and only is not None:
            raise HudiPartialRecords(path=partial.path, instant=partial.instant)
        if counted.corrupt:
            names = ", ".join(log.path for log in logs)
            _LOG.warning("%s: damaged spans that were skipped: %s", names, counted.corrupt)
        schema = pa.schema([pa.field(column.name, column.type) for column in wanted])
        parts = [
            self._records(block, content, wanted, self._by, instants)
            for block, content in self._contents(counted.blocks)
        ]
        return newest_of_each_key(joined_records(parts, schema))

    def unmerged(
        self, slice: FileSlice, gate: Gate, wanted: Sequence[Wanted]
    ) -> Iterator[tuple[KeyedRecords, bool]]:
        """Read the records of a slice's instants, block by block, as they were written (HUDI-R7).

        Yields:
            Records, and whether they have only some of the columns.
        """
        instants = frozenset(details_of(slice).get("instants", ()))
        logs = [delta for delta in slice.deltas if delta.kind is DeltaKind.LOG]
        counted = counted_blocks(self._blocks(logs), gate, instants)
        for block, content in self._contents(counted.blocks):
            yield self._records(block, content, wanted, self._by, instants), block.is_partial

    def history(self, slice: FileSlice, gate: Gate, wanted: Sequence[Wanted]) -> KeyedRecords:
        """Read a window's records that were merged into base files since (HUDI-R5).

        They are not merged among themselves: the base file tells what became of them.

        Args:
            slice: with these logs as deltas.
            gate: tells which instants are visible.
            wanted: their columns, with those of the key.
        """
        instants = frozenset(details_of(slice).get("instants", ()))
        logs = [delta for delta in slice.deltas if delta.kind is DeltaKind.HISTORY]
        counted = counted_blocks(self._blocks(logs), gate, instants)
        schema = pa.schema([pa.field(column.name, column.type) for column in wanted])
        by = replace(self._by, mode=MergeMode.COMMIT_TIME.value, filling=Filling.NOTHING.value)
        parts = [
            self._records(block, content, wanted, by, instants)
            for block, content in self._contents(counted.blocks)
        ]
        return joined_records(parts, schema)

    def _blocks(self, logs: Sequence[Delta]) -> Iterator[Block]:
        for log in logs:
            with damage_named(log.path), self._opened(log) as file:
                yield from read_blocks(file, log.path, log.file_bytes)

    def _contents(self, blocks: Sequence[Block]) -> Iterator[tuple[Block, bytes]]:
        """Read the contents of blocks; a file is opened once for blocks that follow each other."""
        path, file = "", None
        try:
            for block in blocks:
                with damage_named(block.path):
                    if block.path != path or file is None:
                        if file is not None:
                            file.close()
                        path, file = block.path, self._files.open(self._below(block.path))
                    file.seek(block.offset)
                    yield block, bytes(file.read(block.length))
        finally:
            if file is not None:
                file.close()

    def _records(
        self,
        block: Block,
        content: bytes,
        wanted: Sequence[Wanted],
        by: KeyedBy,
        instants: frozenset[str],
    ) -> KeyedRecords:
        schema = pa.schema([pa.field(column.name, column.type) for column in wanted])
        marked = block.instant in instants or not instants.isdisjoint(block.compacted)
        if block.type is BlockType.DELETE:
            deletes = decode_deletes(block, content)
            return delete_records(deletes, by, schema, block.instant, marked=marked)
        decoded = widened(decode_records(block, content, schema.names), wanted)
        found = [found_column(column) for column in decoded.schema]
        rows = Projection(wanted, found, {}, block.path).apply(decoded, block.path)
        missing = set(schema.names).difference(decoded.schema.names) if block.is_partial else ()
        marks = np.full(rows.num_rows, marked)
        return data_records(rows, by, marks, sorted(missing))

    def _opened(self, log: Delta) -> pa.NativeFile:
        file = self._files.open(self._below(log.path))
        found = file.size()
        if found < log.file_bytes:
            file.close()
            problem = f"expected {log.file_bytes} bytes, found {found}"
            raise SourceFileDamaged(path=log.path, problem=problem)
        return file

    def _below(self, path: str) -> str:
        return path.removeprefix(self._files.root).lstrip("/")
