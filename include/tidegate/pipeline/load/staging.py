"""Run one task: read a split of a plan, stage it, and write one commit message per sub-split.

The plan directory has everything that a task needs: it reads neither ledger nor pipeline file.
"""

from __future__ import annotations

import functools
import json
import os
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tidegate.commit.deferral import deferrable
from tidegate.config import PipelineConfig, lend_values, named_values
from tidegate.model.message import CommitMessage, ReadNotes, Staged
from tidegate.model.settling import SettleCounts
from tidegate.model.wire import pretty
from tidegate.pipeline.load.assembling import assembly_in, handing_on
from tidegate.pipeline.load.copying import whole_files
from tidegate.pipeline.load.exchanging import (
    PlanExchange,
    SpreadFileWriter,
    SpreadRows,
    read_spread,
    spreading,
    write_spread,
)
from tidegate.pipeline.state.erasures import erasures
from tidegate.pipeline.state.places import partition_folder, resolved_place
from tidegate.pipeline.state.plan_files import read_plan, read_splits
from tidegate.pipeline.state.reading import Reading
from tidegate.source import open_source
from tidegate.stage import layout
from tidegate.stage.handing_on import HandedOn, Sharing
from tidegate.stage.left_out import LeftOut
from tidegate.stage.stored import read_stored
from tidegate.stage.sub_split import AttemptPlace, StageSpec, give_up, stage_sub_split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from tidegate.model.assembly import Assembly
    from tidegate.model.erasure import Erasure
    from tidegate.model.exchange import Exchange, SpreadFile
    from tidegate.model.partition import Partition
    from tidegate.model.plan import Piece, ScanPlan, Split, SubSplit
    from tidegate.pipeline.load.exchanging import Spreading
    from tidegate.read.changes import Settler
    from tidegate.stage.whole_copy import WholePart
    from tidegate.storage import Storage


@dataclass(frozen=True)
class StageSplits:
    """Stages splits of one plan wherever it is sent to, also where the driver's variables are not.

    The values of the plan's `${env:NAME}` travel with it: Spark shows the environment of executors
    in its UI and its logs, and tasks in neither. Where a variable is set, that value is used.
    """

    storage: Storage
    values: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, storage: Storage, plan_uri: str) -> StageSplits:
        """Prepare the task of a plan in the process that knows the variables."""
        # Not the plan that tasks keep: this process may have seen it before it was mended.
        return cls(storage, named_values(json.dumps(read_plan(storage, plan_uri).config)))

    def __call__(self, plan_uri: str, index: int, attempt: str) -> tuple[CommitMessage, ...]:
        """Stage what one split still lacks, see `stage_split`."""
        lend_values(self.values)
        return stage_split(self.storage, plan_uri, index, attempt)


def stage_split(
    storage: Storage, plan_uri: str, index: int, attempt: str
) -> tuple[CommitMessage, ...]:
    """Stage what one split of a plan still lacks.

    *Runs on:* a Spark task or a local thread. *Called:* at least once per split, possibly twice at
    the same time. *Failure:* sub-splits with a message are done; the others are staged again under
    another attempt's name, with the same file names and bytes.

    Args:
        storage: the storage of plans, parts and messages; bound before the function is sent to a
            task.
        plan_uri: directory of the plan.
        index: position of the split in the plan.
        attempt: name of this execution, completed by a random word.

    Returns:
        The messages of the split's sub-splits that this call finished.
    """
    scan, splits = _plan(storage, plan_uri)
    task = _SplitTask(storage, scan, plan_uri, f"{attempt}.{os.urandom(4).hex()}")
    return tuple(
        task.finish(sub_split)
        for sub_split in splits[index].sub_splits
        if not storage.exists(layout.message_file(plan_uri, sub_split.id))
    )


@dataclass(frozen=True)
class _SplitTask:
    """One execution of a task."""

    storage: Storage
    scan: ScanPlan
    plan_uri: str
    name: str

    def finish(self, sub_split: SubSplit) -> CommitMessage:
        """Read one sub-split, write its rows, and leave its message unless another was first."""
        try:
            message = self._write(sub_split)
        except Exception:
            # Otherwise retries on a full disk would keep it full.
            self._discard(sub_split)
            raise
        path = layout.message_file(self.plan_uri, sub_split.id)
        try:
            is_first = self.storage.write_once(path, pretty(message.to_json()))
        except Exception:
            # If it stands all the same, it names these files.
            if not self.storage.exists(path):
                self._discard(sub_split, message)
            raise
        if is_first:
            return message
        # Another attempt was first: its message counts, this one's files are garbage.
        self._discard(sub_split, message)
        return read_stored(self.storage, path, CommitMessage)

    def _write(self, sub_split: SubSplit) -> CommitMessage:
        config = _config(self.storage, self.plan_uri)
        rows = Reading.of(config.source, open_source(config.source, self.storage), self.scan.pin)
        if sub_split.assembly is not None:
            return self._assemble(sub_split, sub_split.assembly, config, rows)
        if sub_split.is_check:
            return self._check(sub_split, rows)
        exchange, settler = sub_split.exchange, rows.settler()
        whole, rest = self._told_apart(sub_split, config, rows)
        changes = rows.changes(rest) if whole else self._changes(sub_split, rows, settler)
        balance = rows.balance()
        staged, spread = Staged(), None
        if exchange is not None and exchange.spreads:
            placed = SpreadRows(changes, rows.changes_schema, rows.placement(exchange))
            spread = self._spread(sub_split, placed)
        else:
            counted = balance.changes(changes) if balance else changes
            staged, spread = self._stage(sub_split, config, rows, rows.shown(counted), whole)
        noted = ReadNotes(
            settled=settler.counts if settler else SettleCounts(),
            balance=balance.sums if balance else {},
            ignored=rows.ignored,
        )
        return CommitMessage(sub_split.id, self.name, staged, noted, spread)

    def _told_apart(
        self, sub_split: SubSplit, config: PipelineConfig, rows: Reading
    ) -> tuple[Sequence[WholePart], Sequence[Piece]]:
        """Separate the files that are copied from the pieces that are read."""
        scan, files = self.scan, None
        if sub_split.exchange is None:
            files = whole_files(config, rows, scan.planned_at, scan.window.partitions, scan.erased)
        return files.chosen(sub_split.pieces) if files else ((), sub_split.pieces)

    def _changes(
        self, sub_split: SubSplit, rows: Reading, settler: Settler | None
    ) -> Iterator[pa.RecordBatch]:
        """Read the rows of the pieces or of the exchange, settled as far as this sub-split can."""
        exchange = sub_split.exchange
        if exchange is not None and exchange.stage > 0:
            return self._gathered(exchange, settler)
        if settler is not None and exchange is None:
            return settler.commits(sub_split.pieces, rows.changes)
        return rows.changes(sub_split.pieces)

    def _gathered(self, exchange: Exchange, settler: Settler | None) -> Iterator[pa.RecordBatch]:
        spread = _spreading(self.storage, self.plan_uri)
        bucket = PlanExchange(self.storage, self.plan_uri, spread).read(exchange)
        if settler is None:
            return bucket
        if not exchange.spreads:
            return settler.all(bucket, net=exchange.net)
        # Rows that are not paired are not exchanged by row id either.
        return bucket if exchange.net else settler.by_row_id(bucket)

    def _check(self, sub_split: SubSplit, rows: Reading) -> CommitMessage:
        """Read the rows that changes are checked with; none of them is staged."""
        balance, noted = rows.balance(), ReadNotes()
        if balance is not None:
            balance.states(sub_split.pieces, rows.changes)
            noted = ReadNotes(balance=balance.sums)
        return CommitMessage(sub_split.id, self.name, noted=noted)

    def _stage(
        self,
        sub_split: SubSplit,
        config: PipelineConfig,
        rows: Reading,
        batches: Iterator[pa.RecordBatch],
        whole: Sequence[WholePart],
    ) -> tuple[Staged, SpreadFile | None]:
        """Write part files, and the file of rows that are handed on."""
        place, spec, left_out = self._place(sub_split), self._spec(config), None
        schema = rows.schema
        if self.scan.erased is not None:
            left_out = self._left_out(config, rows, spec)
            batches, schema = left_out.left(batches), left_out.schema
        assembly = _assembly(self.storage, self.plan_uri)
        if assembly is None:
            staged = stage_sub_split(batches, schema, spec, place, self.storage, whole)
            return _told(staged, left_out), None
        path = layout.attempt_exchange(sub_split.id, self.name)
        file = SpreadFileWriter(self.storage, self.plan_uri, path, schema, assembly.buckets)
        sharing = self._sharing(sub_split, assembly)
        handed_on = HandedOn(file.append, assembly.buckets, assembly.many, sharing)
        place = replace(place, handed_on=handed_on)
        with closing(file):
            staged = stage_sub_split(batches, schema, spec, place, self.storage, whole)
            return _told(staged, left_out), file.finish()

    def _left_out(self, config: PipelineConfig, rows: Reading, spec: StageSpec) -> LeftOut:
        return LeftOut(
            _erasures(self.storage, self.plan_uri),
            rows.schema,
            spec,
            config.unpublished,
            overwrites=config.target.write == "overwrite",
        )

    def _sharing(self, sub_split: SubSplit, assembly: Assembly) -> Sharing | None:
        if assembly.shares is None:
            return None
        givers = _givers(self.storage, self.plan_uri)
        return Sharing(assembly.shares, givers.index(sub_split.id) / len(givers))

    def _assemble(
        self, sub_split: SubSplit, assembly: Assembly, config: PipelineConfig, rows: Reading
    ) -> CommitMessage:
        """Write part files of rows that others handed on, and read and judged."""
        givers, bucket = _givers(self.storage, self.plan_uri), assembly.bucket
        batches = read_spread(self.storage, self.plan_uri, givers, bucket, assembly.buckets)
        spec, place, schema = self._spec(config), self._place(sub_split), rows.schema
        if self.scan.erased is not None:
            schema = self._left_out(config, rows, spec).schema
        staged = stage_sub_split(batches, schema, spec.of_assembly, place, self.storage)
        return CommitMessage(sub_split.id, self.name, replace(staged, rows_read=0))

    def _spec(self, config: PipelineConfig) -> StageSpec:
        return StageSpec.of(config, self.scan.planned_at, self.scan.window.partitions)

    def _place(self, sub_split: SubSplit) -> AttemptPlace:
        final = _final(self.storage, self.plan_uri)
        return AttemptPlace(self.plan_uri, self.scan.digest, sub_split.id, self.name, final=final)

    def _spread(self, sub_split: SubSplit, spread: SpreadRows) -> SpreadFile | None:
        path = layout.attempt_exchange(sub_split.id, self.name)
        return write_spread(self.storage, self.plan_uri, path, spread)

    def _discard(self, sub_split: SubSplit, message: CommitMessage | None = None) -> None:
        sent = [part.upload for part in message.staged.parts] if message else []
        give_up(self.storage, filter(None, sent))
        for path in (
            layout.attempt_staged(sub_split.id, self.name),
            layout.attempt_quarantine(sub_split.id, self.name),
        ):
            self.storage.delete_tree(f"{self.plan_uri}/{path}")
        self.storage.delete(f"{self.plan_uri}/{layout.attempt_exchange(sub_split.id, self.name)}")


def _told(staged: Staged, left_out: LeftOut | None) -> Staged:
    """Return what was staged, with what was left out of it."""
    if left_out is None:
        return staged
    emptied = tuple(sorted(left_out.partitions, key=lambda item: item.path))
    return replace(staged, rows_erased=left_out.rows or None, emptied=emptied or None)


@functools.lru_cache(maxsize=4)
def _plan(storage: Storage, plan_uri: str) -> tuple[ScanPlan, Sequence[Split]]:
    """Read a plan once per process; it never changes."""
    return read_plan(storage, plan_uri), read_splits(storage, plan_uri)


@functools.lru_cache(maxsize=4)
def _config(storage: Storage, plan_uri: str) -> PipelineConfig:
    """Build a plan's configuration once per process."""
    return PipelineConfig.from_resolved(_plan(storage, plan_uri)[0].config)


@functools.lru_cache(maxsize=4)
def _final(storage: Storage, plan_uri: str) -> Callable[[Partition], str | None] | None:
    """Find out once per process which part files of a plan are sent to where they are published."""
    config = _config(storage, plan_uri)
    can_be = deferrable(config, _plan(storage, plan_uri)[0].planned_at)
    if can_be is None:
        return None
    root = resolved_place(config.target.root, "target.path")
    return lambda it: partition_folder(root, it) if can_be(it) else None


@functools.lru_cache(maxsize=4)
def _erasures(storage: Storage, plan_uri: str) -> tuple[Erasure, ...]:
    """Read what a plan leaves out once per process; it never changes."""
    scan, _splits = _plan(storage, plan_uri)
    if scan.erased is None:
        return ()
    return erasures(storage, layout.work_of_plan(plan_uri), scan.erased)


@functools.lru_cache(maxsize=4)
def _spreading(storage: Storage, plan_uri: str) -> Spreading:
    """Read the exchange of a plan once per process."""
    return spreading(_plan(storage, plan_uri)[1])


@functools.lru_cache(maxsize=4)
def _givers(storage: Storage, plan_uri: str) -> Sequence[str]:
    """Look through a plan once per process for what hands on rows to assemble."""
    return handing_on(_plan(storage, plan_uri)[1])


@functools.lru_cache(maxsize=4)
def _assembly(storage: Storage, plan_uri: str) -> Assembly | None:
    """Look at the end of a plan once per process."""
    return assembly_in(_plan(storage, plan_uri)[1])
