"""Decode the log records of a slice, block by block."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from tidegate.errors import HudiLogUnsupported, HudiPartialRecords
from tidegate.model.file_slice import DeltaKind
from tidegate.source.hudi.logs.blocks import BlockType
from tidegate.source.hudi.logs.counting import Counted, counted_blocks
from tidegate.source.hudi.logs.decoding import decode_deletes, decode_records
from tidegate.source.hudi.logs.deletes import DELETES_VERSION
from tidegate.source.hudi.merge.records import data_records, delete_records
from tidegate.source.hudi.reading.log_files import LogFiles, conformed
from tidegate.source.hudi.slices.details import details_of
from tidegate.source.hudi.table.merge_rules import Filling, MergeMode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from tidegate.model.file_slice import Delta, FileSlice
    from tidegate.read.keyed_merge import KeyedRecords
    from tidegate.source.column_kernels import Wanted
    from tidegate.source.hudi.files import TableFiles
    from tidegate.source.hudi.logs.blocks import Block
    from tidegate.source.hudi.logs.counting import Gate
    from tidegate.source.hudi.table.columns import KeyedBy


class Part(NamedTuple):
    """Records of one block."""

    records: KeyedRecords
    stored_bytes: int
    """Bytes of the block."""


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
            # What was requested after the state cannot have been done in it.
            return instant < self.first_active and instant <= self.until[0]
        return (completed, instant) <= self.until


@dataclass(frozen=True)
class EveryBlock:
    """Admits every block: the plan names only files of visible instants (HUDI-F4)."""

    def admits(self, instant: str) -> bool:
        """Return True."""
        del instant
        return True


class LogRecords:
    """Decodes the log records of slices."""

    def __init__(self, files: TableFiles, by: KeyedBy) -> None:
        """Prepare.

        Args:
            files: of the table.
            by: how its rows are keyed.
        """
        self._logs = LogFiles(files)
        self._by = by
        self.damaged: dict[str, int] = {}
        """Log file → its damaged spans, of what was read so far."""

    def parts(
        self,
        slice: FileSlice,
        gate: Gate,
        wanted: Sequence[Wanted],
        *,
        only: Collection[str] | None = None,
        alone: bool = False,
    ) -> Iterator[Part]:
        """Decode the records of a slice's logs, block by block, in the order of the merge.

        Args:
            slice: with its logs as deltas.
            gate: tells which instants are visible.
            wanted: the columns that are read.
            only: if given, only records of these instants are read.
            alone: whether they are not merged with what was there before.

        Raises:
            HudiLogUnsupported: a block is of a kind that is not read.
            HudiPartialRecords: records have only some columns, and are read alone (HUDI-R4, R8).
            TidegateError: a log is gone, damaged, or has something that is not read.
        """
        instants = frozenset(details_of(slice).get("instants", ()))
        logs = [delta for delta in slice.deltas if delta.kind is DeltaKind.LOG]
        counted = self._counted(logs, gate, only, originals=bool(instants))
        partial = next((block for block in counted.blocks if block.is_partial), None)
        if partial is not None and alone:
            raise HudiPartialRecords(path=partial.path, instant=partial.instant)
        for block, content in self._logs.contents(counted.blocks):
            yield Part(self._records(block, content, wanted, self._by, instants), block.length)

    def unmerged(
        self, slice: FileSlice, gate: Gate, wanted: Sequence[Wanted]
    ) -> Iterator[tuple[KeyedRecords, bool]]:
        """Read the records of a slice's instants, block by block, as they were written (HUDI-R7).

        Yields:
            Records, and whether they have only some of the columns.
        """
        instants = frozenset(details_of(slice).get("instants", ()))
        logs = [delta for delta in slice.deltas if delta.kind is DeltaKind.LOG]
        counted = self._counted(logs, gate, instants)
        for block, content in self._logs.contents(counted.blocks):
            yield self._records(block, content, wanted, self._by, instants), block.is_partial

    def history(
        self, slice: FileSlice, kind: DeltaKind, gate: Gate, wanted: Sequence[Wanted]
    ) -> Iterator[Part]:
        """Decode a window's records that were merged into base files since (HUDI-R5).

        They are not merged among themselves: the base file tells what became of them.

        Args:
            slice: with these logs as deltas.
            kind: of these deltas.
            gate: tells which instants are visible.
            wanted: their columns, with those of the key.
        """
        instants = frozenset(details_of(slice).get("instants", ()))
        logs = [delta for delta in slice.deltas if delta.kind is kind]
        counted = self._counted(logs, gate, instants)
        by = replace(self._by, mode=MergeMode.COMMIT_TIME.value, filling=Filling.NOTHING.value)
        for block, content in self._logs.contents(counted.blocks):
            yield Part(self._records(block, content, wanted, by, instants), block.length)

    def _counted(
        self,
        logs: Sequence[Delta],
        gate: Gate,
        exact: Collection[str] | None,
        *,
        originals: bool = False,
    ) -> Counted:
        counted = counted_blocks(self._logs.blocks(logs), gate, exact, originals=originals)
        for block in counted.blocks:
            _refuse(block)
        self.damaged.update(counted.corrupt)
        return counted

    def _records(
        self,
        block: Block,
        content: bytes,
        wanted: Sequence[Wanted],
        by: KeyedBy,
        instants: frozenset[str],
    ) -> KeyedRecords:
        schema = pa.schema([pa.field(column.name, column.type) for column in wanted])
        marked = _may_have(block, instants)
        if block.type is BlockType.DELETE:
            deletes = decode_deletes(block, content, by.ordering)
            return delete_records(deletes, by, schema, block.instant, marked=marked)
        decoded = decode_records(block, content, schema.names)
        rows = conformed(decoded, wanted, block.path)
        missing = set(schema.names).difference(decoded.schema.names) if block.is_partial else ()
        marks = np.full(rows.num_rows, marked)
        return data_records(rows, by, marks, sorted(missing))


def _refuse(block: Block) -> None:
    """Refuse blocks that are not read, before any row is (HUDI-S3, L4)."""
    if block.type is BlockType.HFILE:
        expected, found = "AVRO or PARQUET", block.type.name
    elif block.content_version not in {None, DELETES_VERSION}:
        expected = f"deletes of version {DELETES_VERSION}"
        found = f"version {block.content_version}"
    else:
        return
    raise HudiLogUnsupported(path=block.path, offset=block.offset, expected=expected, found=found)


def _may_have(block: Block, instants: frozenset[str]) -> bool:
    """Return whether a block may have records of some instants (HUDI-M5).

    A log compaction may name log compactions before it instead of writes; each was requested after
    the writes that it stands for.
    """
    if not instants or block.instant in instants:
        return bool(instants)
    first = min(instants)
    return any(named >= first for named in block.compacted)
