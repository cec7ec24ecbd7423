"""Stage one sub-split: read batches, write part files, and return a description of them.

Writes no commit message: the caller decides whether this attempt won.
"""

from __future__ import annotations

import posixpath
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import pyarrow as pa

from tidegate.errors import ColumnMissing, SortColumnInvalid, TidegateError
from tidegate.model.message import EventTimes, HeldPartition, PartFile, Staged
from tidegate.model.nearness import listed_with_nearest
from tidegate.model.part_format import PARQUET, PartFormat
from tidegate.model.partition import DEFAULT_NAME, Partition, PartitionField
from tidegate.model.row_kind import CHANGE_TYPE
from tidegate.physical.arrays import boolean_column, flags, repeated_text
from tidegate.physical.parts import check_fit
from tidegate.read.sorted_rows import RowOrder, order_problem
from tidegate.read.upsert import removes_row
from tidegate.stage import layout
from tidegate.stage.column_names import check_unlike
from tidegate.stage.event_bounds import EventClock
from tidegate.stage.key_columns import check_keys, check_no_null
from tidegate.stage.part_writers import Destination, PartShape, PartWriters, WriteLimits
from tidegate.stage.partition_split import PartitionComputer
from tidegate.stage.row_rules import Judged, RowRules
from tidegate.stage.whole_copy import copy_whole, send_whole
from tidegate.storage import is_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from tidegate.config import PipelineConfig, RowRule, TargetConfig
    from tidegate.model.sort_key import SortKey
    from tidegate.model.upload import Upload
    from tidegate.stage.handing_on import HandedOn
    from tidegate.stage.whole_copy import WholePart
    from tidegate.storage import Storage

QUARANTINED_BY = "quarantined_by"
"""Column of quarantined rows with the name of the rule that rejected them."""


@dataclass(frozen=True)
class StageSpec:
    """How a pipeline writes its rows."""

    fields: tuple[PartitionField, ...] = ()
    timezone: str = "UTC"
    rules: tuple[RowRule, ...] = ()
    event_time: str | None = None
    counts_until: datetime | None = None
    """Event times after this are future (design §7); None counts all."""
    unit: str = "us"
    """The unit of integers that are event times."""
    default_name: str = DEFAULT_NAME
    limits: WriteLimits = field(default_factory=WriteLimits)
    form: PartFormat = PARQUET
    only: frozenset[Partition] = frozenset()
    """The partitions that a rebuild writes; empty writes all."""
    keys: tuple[str, ...] = ()
    """The columns that identify a row, of which none may be NULL."""
    sort_by: tuple[SortKey, ...] = ()
    """The order of the rows in a part file; empty keeps that of the source."""

    @property
    def of_assembly(self) -> StageSpec:
        """How handed-on rows, which were judged before, are written."""
        return replace(self, rules=(), only=frozenset())

    @staticmethod
    def limits_of(target: TargetConfig) -> WriteLimits:
        """Return the limits at which files of a target are closed."""
        return WriteLimits(
            file_bytes=target.rolling.file_size,
            # In memory; in a file, they take a tenth to a third of that.
            small_bytes=target.rolling.file_size // 4,
            open_files=target.max_open_partitions,
            group_rows=target.row_group.rows,
            group_bytes=target.row_group.size,
        )

    @classmethod
    def of(
        cls, config: PipelineConfig, planned_at: datetime, only: Iterable[Partition] = ()
    ) -> StageSpec:
        """Build it from a pipeline's configuration.

        Args:
            config: as in the plan.
            planned_at: the clock of the run, from the plan, so that a retry counts the same rows.
            only: the partitions of a rebuild.
        """
        event_time, target = config.event_time, config.target
        return cls(
            fields=target.partition_by,
            timezone=config.timezone,
            rules=config.rows,
            event_time=event_time.column if event_time else None,
            counts_until=planned_at + event_time.future_tolerance if event_time else None,
            unit=event_time.unit if event_time else "us",
            default_name=target.default_partition_name,
            limits=cls.limits_of(target),
            form=target.part_format,
            only=frozenset(only),
            keys=target.keys,
            sort_by=target.sort_by,
        )


@dataclass(frozen=True)
class AttemptPlace:
    """The destination of one attempt at one sub-split."""

    plan_root: str
    plan_digest: str
    sub_split: str
    attempt: str
    """Never used before: it ends with a random word (PC-F01)."""
    handed_on: HandedOn | None = None
    """Takes rows that would make many small files; None: every row is written to a file here."""
    final: Callable[[Partition], str | None] | None = None
    """Partition → the directory of its published files, if they are sent there and completed by the
    commit (PC-F36); None: they are staged."""


def stage_sub_split(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    spec: StageSpec,
    place: AttemptPlace,
    storage: Storage,
    whole: Iterable[WholePart] = (),
) -> Staged:
    """Write the part files of one attempt, and hand on rows that would make many small files.

    *Runs on:* the task of a split. *Called:* at least once per sub-split. *Failure:* written files
    stay in the attempt's directory, which no message names; the next attempt has another.

    Args:
        batches: the sub-split's rows in plan order, each with at least one row.
        schema: the schema of the batches.
        spec: how rows are judged, split and written.
        place: directories and names.
        storage: the storage of the part files.
        whole: files of the sub-split that are copied, and are not among the batches.

    Returns:
        The staged files, all closed and flushed to disk. Rows that were handed on count as read,
        but neither as kept nor as quarantined.

    Raises:
        PredicateInvalid: a row rule does not fit the schema.
        ColumnMissing: a column of a key, of a partition key, of the event time or to sort by
            does not exist.
        KeyUnusable: a column that identifies rows has a type that cannot.
        KeyMissing: a row has no value in one of them.
        ColumnUnfit: the format cannot hold a column.
        ColumnsAlike: the names of two columns differ only in case.
        ValueUnfit: it cannot spell a value.
        PartitionFieldInvalid: a partition key does not fit its column's type.
        SortColumnInvalid: the values of a column in `target.sort_by` have no order.
        PartitionValueReserved: the text of a value is the name of the default partition.
        StorageFull: no space is left (Transient).
    """
    attempt = _Attempt(schema, spec, place, storage)
    try:
        for part in whole:
            attempt.copy(part)
        for batch in batches:
            attempt.take(batch)
        return attempt.finish()
    except BaseException:
        attempt.abandon()
        raise


class _Attempt:
    """The state of one attempt: writers and counts."""

    def __init__(
        self, schema: pa.Schema, spec: StageSpec, place: AttemptPlace, storage: Storage
    ) -> None:
        self._place = place
        self._storage = storage
        self._only = spec.only
        self._computer = PartitionComputer(
            schema, spec.fields, timezone=spec.timezone, default_name=spec.default_name
        )
        self._rules = RowRules(spec.rules, schema)
        check_keys(schema, spec.keys)
        self._keys = spec.keys
        clock = None
        if spec.event_time is not None and spec.counts_until is not None:
            clock = EventClock(schema, spec.event_time, spec.timezone, spec.counts_until, spec.unit)
        self._handed_on = place.handed_on
        self._buffered_columns = (
            # The partitions of rows that are handed on are computed anew.
            schema.names if self._handed_on else _buffered_columns(schema, self._computer, clock)
        )
        measure = clock.measure if clock else _no_event_times
        columns = self._computer.data_columns
        check_fit(pa.schema([schema.field(name) for name in columns]), spec.form)
        order = _row_order(spec.sort_by, schema, columns)
        check_unlike(schema.field(name) for name in columns)
        if spec.keys:
            # Of changes the last one counts; rows are sorted when they are merged.
            order = RowOrder()
        form = replace(spec.form, sorted_by=order.keys or None)
        shape = PartShape(columns, measure, form, order)
        self._kept = self._writers(shape, spec.limits, self._open_part, self._handed_on)
        aside = PartShape((*schema.names, QUARANTINED_BY), _no_event_times)
        self._aside = self._writers(aside, spec.limits, self._open_staged)
        self._destinations: dict[Partition, Destination] = {}
        self._rows_read = 0
        self._rows_kept = 0
        self._hits: Counter[str] = Counter(dict.fromkeys(self._rules.names, 0))
        self._held: defaultdict[Partition, Counter[str]] = defaultdict(Counter)

    def take(self, batch: pa.RecordBatch) -> None:
        """Judge one batch and hand its rows to their writers."""
        self._rows_read += batch.num_rows
        judged = self._judged(self._wanted(batch) if self._only else batch)
        self._hits.update(judged.hits)
        for rule, rows in judged.quarantined:
            self._put_aside(rule, rows)
        kept = judged.kept
        if not kept.num_rows:
            return
        self._rows_kept += kept.num_rows
        check_no_null(kept, self._keys)
        split = self._computer.split(kept)
        for rule, failed in judged.held.items():
            for partition, rows in split.touched(failed):
                self._held[partition][rule] += rows
        if self._handed_on is not None:
            split, kept = self._handed_on.scattered(split, kept)
        if not kept.num_rows:
            return
        for partition, rows in split.slices(kept.select(self._buffered_columns)):
            self._kept.append(self._destination(partition), rows)

    def copy(self, part: WholePart) -> None:
        """Copy a source file as a part file; its rows are counted as if they had been read."""
        self._rows_read += part.rows
        self._rows_kept += part.rows
        self._kept.adopt(self._destination(part.partition), lambda path: self._copied(part, path))

    def finish(self) -> Staged:
        """Finish all files and return their description."""
        parts, quarantined = self._kept.close(), self._aside.close()
        staged = [part.staged for part in (*parts, *quarantined) if part.upload is None]
        self._storage.sync_all(self._place.plan_root, staged)
        bounds = EventTimes()
        for part in parts:
            bounds = bounds.merged(part.event_times)
        held = sorted(self._held.items(), key=lambda item: item[0].path)
        return Staged(
            parts=parts,
            quarantined=quarantined,
            rows_read=self._rows_read,
            rows_kept=self._rows_kept - (self._handed_on.rows if self._handed_on else 0),
            event_times=bounds,
            rule_hits=dict(self._hits),
            held=tuple(HeldPartition(item, tuple(sorted(rows)), dict(rows)) for item, rows in held),
        )

    def abandon(self) -> None:
        """Close all files without finishing them."""
        self._kept.abandon()
        self._aside.abandon()
        give_up(self._storage, self._kept.sent)

    def _judged(self, batch: pa.RecordBatch) -> Judged:
        """Apply the rules, of changes only to the rows that they leave.

        A delete that is put aside would let the row stand that the source no longer has.
        """
        if not (self._keys and self._rules.names and CHANGE_TYPE in batch.schema.names):
            return self._rules.judge(batch)
        removes = removes_row(batch.column(CHANGE_TYPE))
        for key in self._keys:
            # No row stands without a key: a rule that keeps such rows out takes them here, too.
            removes &= flags(batch.column(key).is_valid())
        judged = self._rules.judge(batch.filter(boolean_column(~removes)))
        # Of one commit, rows that it removed come first however they are staged.
        removing = batch.filter(boolean_column(removes))
        unjudged = np.zeros(removing.num_rows, np.bool_)
        held = {rule: np.concatenate([it, unjudged]) for rule, it in judged.held.items()}
        return replace(judged, kept=pa.concat_batches([judged.kept, removing]), held=held)

    def _wanted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Leave out rows of partitions that are not rebuilt, before any rule is applied."""
        slices = self._computer.split(batch).slices(batch)
        wanted = [rows for partition, rows in slices if partition in self._only]
        return pa.concat_batches(wanted) if wanted else batch.slice(0, 0)

    def _destination(self, partition: Partition) -> Destination:
        # Of a batch of many partitions, making their paths again would take longer than their rows.
        if partition not in self._destinations:
            staged = layout.attempt_staged(self._place.sub_split, self._place.attempt)
            folder = posixpath.join(staged, partition.path) if partition.path else staged
            self._destinations[partition] = Destination(partition, folder)
        return self._destinations[partition]

    def _copied(self, part: WholePart, path: str) -> PartFile:
        # Inside a store, no byte passes through this process.
        sent = None if is_object(part.file.path) else self._begun(part.partition, path)
        upload = None
        if sent is not None:
            copied = send_whole(self._storage, part, sent)
            sha256, upload = copied.sha256, copied.upload
        else:
            full = self._full(path)
            copy_whole(self._storage, part, full)
            # Of the copy: the message describes the existing file.
            sha256 = self._storage.sha256(full)
        return PartFile(
            partition=part.partition,
            name=posixpath.basename(path),
            staged=path,
            length=part.file.footer.end.length,
            sha256=sha256,
            rows=part.rows,
            event_times=part.event_times,
            upload=upload,
        )

    def _put_aside(self, rule: str, rows: pa.RecordBatch) -> None:
        root = layout.attempt_quarantine(self._place.sub_split, self._place.attempt)
        named = rows.append_column(QUARANTINED_BY, repeated_text(rule, rows.num_rows))
        self._aside.append(Destination(Partition(()), posixpath.join(root, rule)), named)

    def _writers(
        self,
        shape: PartShape,
        limits: WriteLimits,
        open_file: Callable[[Destination, str], BinaryIO],
        handed_on: HandedOn | None = None,
    ) -> PartWriters:
        place = self._place
        return PartWriters(
            open_file,
            lambda counter: layout.part_name(
                place.plan_digest, place.sub_split, counter, shape.form.extension
            ),
            shape,
            limits,
            handed_on,
        )

    def _open_part(self, to: Destination, path: str) -> BinaryIO:
        return self._begun(to.partition, path) or self._open_staged(to, path)

    def _begun(self, partition: Partition, path: str) -> BinaryIO | None:
        """Begin a file where it is published; None if it has to be staged."""
        final = self._place.final(partition) if self._place.final else None
        uploads = self._storage.uploads(final) if final is not None else None
        return None if uploads is None else uploads.begin(f"{final}/{posixpath.basename(path)}")

    def _open_staged(self, _: Destination, path: str) -> BinaryIO:
        return self._storage.open_new(self._full(path))

    def _full(self, path: str) -> str:
        """Return the path of a new file, whose directory is created."""
        full = posixpath.join(self._place.plan_root, path)
        self._storage.make_dirs(posixpath.dirname(full), synced=False)
        return full


def give_up(storage: Storage, sent: Iterable[Upload]) -> None:
    """Give up what an attempt has sent and no message names.

    *Failure:* what is left is given up by `gc`.
    """
    for upload in sent:
        with suppress(TidegateError):
            storage.give_up(upload.path, upload.id)


def _buffered_columns(
    schema: pa.Schema, computer: PartitionComputer, clock: EventClock | None
) -> list[str]:
    """Return the columns for the writers: those of the files, and the event time to measure."""
    wanted = {*computer.data_columns, *([clock.column] if clock else [])}
    return [name for name in schema.names if name in wanted]


def _row_order(keys: tuple[SortKey, ...], schema: pa.Schema, columns: Sequence[str]) -> RowOrder:
    for key in keys:
        if key.column not in columns:
            known = listed_with_nearest(key.column, columns)
            raise ColumnMissing(source="target.sort_by", column=key.column, known=known)
        kind = schema.field(key.column).type
        problem = order_problem(kind)
        if problem is not None:
            raise SortColumnInvalid(column=key.column, found=str(kind), problem=problem)
    return RowOrder(keys)


def _no_event_times(_: pa.RecordBatch) -> EventTimes:
    return EventTimes()
