"""Make the plan of a window: list its files, cut and pack them, and record why."""

from __future__ import annotations

import functools
import gc
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tidegate.errors import (
    ChangesReadWhole,
    ErasedColumnGone,
    ErasedColumnUnread,
    PredicateInvalid,
    TidegateError,
)
from tidegate.model.partition import Partition, Transform
from tidegate.model.partition_value import INTERVALS
from tidegate.model.plan import PlanTotals, ScanPlan, WindowKind, plan_digest
from tidegate.model.plan_record import PlanRecord
from tidegate.pipeline.load.copying import UncutFiles
from tidegate.pipeline.load.rebuilt_files import RebuiltTimes
from tidegate.pipeline.load.rehearsal import rehearse
from tidegate.pipeline.load.replacing import check_keys, replaced_partitions
from tidegate.pipeline.load.row_partitions import deciding_columns, partitions_of_rows
from tidegate.pipeline.state.erasures import came_after, not_told
from tidegate.pipeline.state.fingerprint import library_fingerprint
from tidegate.pipeline.state.reading import Reading
from tidegate.plan import (
    Scale,
    adapted_target,
    delete_totals,
    merged_bounds,
    plan_change_splits,
    plan_one_split,
    plan_splits,
    row_width,
    split_totals,
)
from tidegate.plan.assembly import with_assembly
from tidegate.plan.bounds import event_column, with_bounds
from tidegate.plan.fan_out import FanOut
from tidegate.plan.limits import limit_cut
from tidegate.plan.order import by_age
from tidegate.read.erased_rows import untold, without

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    import pyarrow as pa

    from tidegate.config import PipelineConfig, SplitConfig
    from tidegate.model.erasure import Erasure
    from tidegate.model.instant import Instant
    from tidegate.model.plan import Piece, Pin, Split, Window
    from tidegate.physical import RowGroup
    from tidegate.plan.limits import Volumes
    from tidegate.source.protocol import Source
    from tidegate.source.slicing import Units

# Fixed rather than the machine's cores, so that a window is cut the same way everywhere.
_PARALLELISM = 8
_IN_MEMORY = 4
"""Rows take three to ten times as much memory as they do in a file; of a share that fills several
files, the last one alone is not full."""
_FINEST_FIRST = (Transform.HOUR, Transform.DAY, Transform.MONTH)


def pinned_at(source: Source, pin: Pin, window: Window) -> Pin:
    """Pin the source as a window reads it; at the head, as the run saw it (ICE-2.9)."""
    end = window.range.end_inclusive
    return pin if pin.head is not None and pin.head.id == end.id else source.timeline.at(pin, end)


def volumes_of(source: Source, pin: Pin) -> Volumes:
    """Return the function that tells how much each instant of a pinned source adds."""
    hints = source.hints
    return functools.partial(hints.volumes, pin) if hints else lambda *_: None


@functools.cache
def _has_frozen_modules() -> bool:
    """Return whether a command excluded its modules from collections; counting them takes time."""
    return gc.get_freeze_count() > 0


@contextmanager
def _without_collections() -> Iterator[None]:
    """Pause the garbage collector while many values are made, which saves a quarter of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if not _has_frozen_modules():
            # Both together move all values to the oldest generation, which is not searched right
            # away.
            gc.freeze()
            gc.unfreeze()
        if was_enabled:
            gc.enable()


def _notes(units: Units, window: Window, pin: Pin) -> tuple[str, ...]:
    """Return what planning found, and what keeps the window from being longer."""
    is_at_head = pin.head is not None and pin.head.id == window.range.end_inclusive.id
    return (*units.notes, pin.held_back) if is_at_head and pin.held_back else units.notes


@dataclass
class _Footers:
    """Reads footers for the planner, and counts them."""

    source: Source
    paths: list[str] = field(default_factory=list)

    def __call__(self, piece: Piece) -> Sequence[RowGroup]:
        self.paths.append(piece.path)
        return self.source.slicing.row_groups(piece)


@dataclass(frozen=True)
class _Found:
    """The files of a window, and the splits that they were cut into."""

    units: Units
    pieces: tuple[Piece, ...]
    splits: tuple[Split, ...]
    target_size: int
    footers_read: int
    replaced: tuple[Partition, ...]


@dataclass(frozen=True)
class Scanner:
    """Plans windows of one pipeline; takes none and writes nothing."""

    config: PipelineConfig
    source: Source
    erased: int | None
    """The number of the newest erasure; None: nothing was erased."""
    erasures: Callable[[int], Sequence[Erasure]]
    """Reads the erasures up to a number, whose rows are left out."""
    checkpoint: Callable[[], Instant | None]
    """Returns the instant up to which the source was read."""

    def digest(self, window: Window, pinned: Pin, *, again: int = 0) -> str:
        """Return the digest of a window's plan, before planning it."""
        inputs = self.config.plan_inputs()
        # Includes the table's properties, which decide the splits as the pipeline file does.
        split = self._split(pinned).model_dump(mode="json")
        inputs = {**inputs, "source": {**inputs["source"], "split": split}}
        if self.erased is not None:
            inputs["erased"] = self.erased
        fingerprint = library_fingerprint()
        return plan_digest(self.config.name, window, pinned, inputs, fingerprint, again=again)

    def scan(
        self, window: Window, pin: Pin, now: datetime, digest: str | None = None
    ) -> tuple[ScanPlan, tuple[Split, ...]]:
        """Plan a window.

        Args:
            window: what is read.
            pin: the source as the run sees it; the window's end need not be its head.
            now: clock of the run.
            digest: the plan's name, if it was chosen already.

        Raises:
            ChangesReadWhole: the mode was changed since the window was taken.
            PartitionsUnlikeSource: see `check_keys`.
            ColumnMissing, SchemaIncompatible, PartitionFieldInvalid, PredicateInvalid: the rows do
                not have what the target, the event time or a row rule needs.
            StatsMissing: the requested order or bounds need metadata that a file does not have.
            ErasedColumnGone, ErasedColumnUnread: erased rows could not be told among those that are
                read.
            TidegateError: the source refuses that the window is published; see `Units`.
        """
        pinned = pinned_at(self.source, pin, window)
        check_keys(self.config, self.source.slicing.replaced_columns(pinned))
        reading = Reading.of(self.config.source, self.source, pinned)
        rehearse(self.config, reading, now)
        known = self.erasures(self.erased) if self.erased is not None else ()
        self._check_told(known, window, reading.schema)
        with _without_collections():
            found = self._find(window, pinned, now)
        for file in found.units.narrow:
            self._check_told(known, window, without(reading.schema, file.lacks), file.path)
        scan = ScanPlan(
            digest=digest or self.digest(window, pinned),
            pipeline=self.config.name,
            window=window,
            pin=pinned,
            config=self.config.resolved(),
            fingerprint=library_fingerprint(),
            planned_at=now,
            totals=PlanTotals(
                instants=self._instants(found, pinned, window),
                files=len(found.pieces),
                bytes=sum(piece.size_bytes for piece in found.pieces),
                rows=sum(piece.rows for piece in found.pieces),
                splits=len(found.splits),
                sub_splits=sum(len(split.sub_splits) for split in found.splits),
            ),
            notes=_notes(found.units, window, pin),
            record=self._record(found, window, pin),
            replaced=found.replaced,
            erased=self.erased,
        )
        return scan, found.splits

    def _check_told(
        self,
        known: Sequence[Erasure],
        window: Window,
        columns: pa.Schema,
        where: str = "the source",
    ) -> None:
        """Check that erased rows can be told from others by the columns that are read.

        Raises:
            ErasedColumnGone: they cannot, among rows that come now.
            ErasedColumnUnread: they cannot, among rows that may have come before.
        """
        found = ((item.number, untold(item, columns)) for item in known)
        problems = {number: problem for number, problem in found if problem is not None}
        item = not_told(known, window, problems)
        if item is None:
            return
        name, problem = problems[item.number]
        checkpoint = self.checkpoint()
        comes = checkpoint is not None and came_after(window, checkpoint)
        raise (ErasedColumnGone if comes else ErasedColumnUnread)(
            pipeline=self.config.name,
            number=item.number,
            column=name,
            found=f"{problem} in {where}",
        )

    def _find(self, window: Window, pinned: Pin, now: datetime) -> _Found:
        self._check_reads_changes(window)
        limit = self.config.source.read.limit
        units = self.source.slicing.units(
            pinned,
            window.range,
            whole=window.kind.reads_whole,
            event_time=event_column(self.config),
            enough=limit,
        )
        if units.refusal is not None:
            raise units.refusal
        units = self._telling_left_out(units)
        replaced = replaced_partitions(self.config, window, units)
        rebuilt = RebuiltTimes.of(self.config, window.partitions)
        units = rebuilt.within(units) if rebuilt is not None else units
        hints = self.source.hints
        footer_bounds = hints.footer_bounds if hints else None
        pieces = with_bounds(units.pieces, footer_bounds, self.config)
        split, footers = self._split(pinned), _Footers(self.source)
        width = row_width(self.source.reading.schema(pinned))
        rules = self.source.reading.settling(pinned)
        exchanges = rules.exchanges if rules else 0
        fan_out = None if self.config.keeps_order else self._fan_out(window)
        if self.config.keeps_order:
            pieces = tuple(by_age(pieces))
            # Bins that stay open would bring later pieces before earlier ones.
            split = split.model_copy(update={"order": "none", "lookback": 1})
        if limit is not None:
            splits = plan_one_split(pieces, split, width)
        elif exchanges:
            splits = plan_change_splits(pieces, footers, split, width, _PARALLELISM, exchanges)
        else:
            uncut = UncutFiles(
                self.config, self.source, pinned, now, window.partitions, self.erased, fan_out
            )
            splits = plan_splits(pieces, footers, split, width, _PARALLELISM, uncut)
        scale = Scale(width, split.open_cost)
        target = adapted_target(pieces, scale, split.target_size, _PARALLELISM)
        splits += plan_splits(units.checks, footers, split, width, _PARALLELISM)
        splits = with_assembly(splits, fan_out, target, width, self._share_size())
        return _Found(units, pieces, splits, target, len(footers.paths), replaced)

    def _share_size(self) -> int | None:
        """Return how many bytes of a partition one task brings together; None: rows stay apart."""
        target = self.config.target
        return target.rolling.file_size * _IN_MEMORY if target.shuffle_by_partition else None

    def _fan_out(self, window: Window) -> FanOut | None:
        """Return what counts partitions by event times; None where the target has none."""
        column = event_column(self.config)
        keys = self.config.target.partition_by
        if not keys:
            return None
        made = [
            item.transform
            for item in keys
            if column is not None and item.column == column.name and item.transform in INTERVALS
        ]
        return FanOut(
            transform=next((item for item in _FINEST_FIRST if item in made), None),
            timezone=self.config.timezone,
            has_other_keys=len(made) < sum(bool(item.columns) for item in keys),
            most=len(window.partitions) or None,
        )

    def _check_reads_changes(self, window: Window) -> None:
        """Refuse to read the whole source for a window of changes."""
        joins_on = window.range.start_exclusive is not None and not window.kind.replaces
        if joins_on and self.config.source.read.mode == "snapshot":
            raise ChangesReadWhole(pipeline=self.config.name, window=window.sequence)

    def _telling_left_out(self, units: Units) -> Units:
        """Read to which partitions the rows belong that are passed over."""
        left_out = units.left_out
        if left_out is None:
            return units
        columns = deciding_columns(self.config)
        try:
            found = (
                partitions_of_rows(
                    self.config, self.source, left_out.narrowed(columns), left_out.pieces
                )
                if columns
                else {Partition(())}
            )
        except PredicateInvalid:
            raise
        except TidegateError:
            # Files that are not read need not be readable.
            removed = (*(units.listed.removed or ()), *left_out.times)
            return replace(units, listed=replace(units.listed, removed=removed))
        brought = tuple(sorted(found, key=str)) or None
        return replace(units, listed=replace(units.listed, brought=brought))

    def _record(self, found: _Found, window: Window, pin: Pin) -> PlanRecord:
        unknown = sum(piece.event_times is None for piece in found.pieces)
        cut = None
        if window.kind is WindowKind.LOAD:
            cut = limit_cut(
                window.range,
                lambda: self.source.timeline.retained(pin),
                volumes_of(self.source, pin),
                self.config.source.window_limits,
            )
        return PlanRecord(
            checkpoint=self._checkpoint(window, pin),
            listed=found.units.listed,
            deletes=delete_totals(found.pieces),
            target_size=found.target_size,
            terms=split_totals(found.splits),
            footers_read=found.footers_read,
            event_times=merged_bounds(found.pieces),
            files_without_bounds=unknown if event_column(self.config) else 0,
            limit=cut,
        )

    def _checkpoint(self, window: Window, pin: Pin) -> str:
        start = window.range.start_exclusive
        if start is None or window.kind is not WindowKind.LOAD:
            return ""
        state = self.source.timeline.checkpoint_state(pin, start)
        return f"{state.state}: {state.detail}"

    def _split(self, pin: Pin) -> SplitConfig:
        """Return `source.split`, with the table's properties for keys that are not set."""
        said = self.config.source.split
        defaults = self.source.hints.split_defaults(pin) if self.source.hints else {}
        unsaid = {key: item for key, item in defaults.items() if key not in said.model_fields_set}
        return said.model_copy(update=unsaid)

    def _instants(self, found: _Found, pinned: Pin, window: Window) -> int:
        if window.range.start_exclusive is None or window.kind.reads_whole:
            return sum(action.count for action in found.units.listed.instants) or 1
        return len(self.source.timeline.instants(pinned, window.range.start_exclusive))
