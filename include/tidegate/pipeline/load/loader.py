"""Plan windows, and read back the messages of their plans.

Each step can be repeated, by the same run or another one, and continues from what it finds.
"""

from __future__ import annotations

import functools
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidegate.commit.deferral import copied_because
from tidegate.errors import TerminalError, WindowIncomplete
from tidegate.errors.commands import command
from tidegate.model.message import CommitMessage
from tidegate.model.plan import WindowKind
from tidegate.model.plan_record import Listed
from tidegate.model.run import Look, PlannedWindow, Run
from tidegate.model.wire import pretty
from tidegate.pipeline.load.abandoning import Abandoner
from tidegate.pipeline.load.changed_columns import (
    check_columns,
    check_deletes,
    check_kinds,
    notes_on_columns,
)
from tidegate.pipeline.load.drafting import Drafting
from tidegate.pipeline.load.pins import Pins
from tidegate.pipeline.load.plan_names import PlanNames
from tidegate.pipeline.load.rebuilding import rebuild_of
from tidegate.pipeline.load.replaying import Replay, Replays
from tidegate.pipeline.load.scanning import Scanner
from tidegate.pipeline.load.taker import Taken, Taker
from tidegate.pipeline.state.erasures import erasures, newest_erasure
from tidegate.pipeline.state.passed_over import partitions_at
from tidegate.pipeline.state.plan_files import (
    announces_in,
    has_plan,
    read_plan,
    read_splits,
    write_splits,
)
from tidegate.pipeline.state.renewing import renewing_windows
from tidegate.stage import layout
from tidegate.stage.stored import damaged, read_stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from tidegate.config import PipelineConfig
    from tidegate.ledger import Ledger
    from tidegate.ledger.holder import Life
    from tidegate.model.instant import Instant, InstantRange
    from tidegate.model.ledger_rows import WindowState
    from tidegate.model.partition import Partition
    from tidegate.model.plan import Pin, PlanTotals, ScanPlan, Split, Window
    from tidegate.pipeline.load.changed_files import ChangedRows
    from tidegate.pipeline.state.behind import Watch
    from tidegate.pipeline.state.places import Roots
    from tidegate.source.protocol import Source
    from tidegate.storage import Storage


@dataclass(frozen=True)
class Preview:
    """What a load would read (PC-C08)."""

    range: InstantRange | None
    """None if there is nothing to take."""
    plan: ScanPlan | None
    splits: tuple[Split, ...]
    waits: str | None = None
    """What the pipeline waits for before it takes its first window."""
    replays: tuple[Replay, ...] = ()
    """The sealed windows that it would go through again."""


@dataclass(frozen=True)
class Loader:
    """The first half of a pipeline: once per window.

    Runs on: the process of one run's step. Called: at least once per step and run. Failure: a
    window that was taken stays taken; the next attempt continues it with the same plan digest, and
    stages only the sub-splits without a message. A window that cannot be planned is given back, and
    dropped if it has no plan or its plan was lost.
    """

    config: PipelineConfig
    roots: Roots
    ledger: Ledger
    storage: Storage
    source: Source
    life_of: Callable[[str], Life]
    """Finds out what became of the run that holds a window."""
    watch: Watch
    changed: ChangedRows

    def look(self, run: Run, now: datetime) -> Look:
        """Return what a run would find, from the source's metadata alone; takes nothing."""
        return self._taker.look(run, now)

    def plan(self, run: Run, now: datetime) -> tuple[PlannedWindow, ...]:
        """Take the run's window, or those that it replays, and write their plans.

        Returns:
            One entry per window; none when there is nothing to do.

        Raises:
            WindowOpen: another run works on the pipeline's open window (Transient).
            LedgerMoved: other runs changed the ledger at each attempt (Transient).
        """
        taken, found = self._undertaken(lambda: self._taker.take(run, now), now)
        return tuple(
            replace(planned, taken_over=not item.sealed and item.window.run != run.id)
            for item, planned in zip(taken.windows, found, strict=True)
        )

    def replay(self, sequence: int, run: Run, now: datetime) -> tuple[PlannedWindow, ...]:
        """Plan one window again, with the configuration as it is now."""
        return self._undertaken(lambda: self._taker.replay(sequence, run, now), now)[1]

    def rebuild(
        self, partitions: Sequence[Partition], run: Run, now: datetime
    ) -> tuple[PlannedWindow, ...]:
        """Take a window that reads partitions whole, as of the checkpoint.

        Before the first load none is taken.
        """
        return self._undertaken(lambda: self._taker.rebuild(partitions, run, now), now)[1]

    def reset(self, run: Run, now: datetime) -> tuple[PlannedWindow, ...]:
        """Take a window that begins again at `source.start`, and replaces everything before it.

        Before the first load none is taken.
        """
        return self._undertaken(lambda: self._taker.reset(run, now), now)[1]

    def preview(self, run: Run, now: datetime) -> Preview:
        """Plan what a run would read; takes no window and writes nothing (PC-C08)."""
        draft = self._taker.preview(run, now)
        compared = Replays(self.roots.work, self.storage, self._pins)
        replays = tuple(compared.of(item, draft.pin) for item in draft.replayed)
        if draft.window is None:
            return Preview(None, None, (), draft.waits, replays)
        plan, splits = self._scan(draft.window, draft.pin, now)
        return Preview(draft.window.range, plan, splits, replays=replays)

    def messages(self, planned: PlannedWindow) -> Iterator[CommitMessage]:
        """Read the commit messages of a plan, in plan order.

        Raises:
            WindowIncomplete: a sub-split has no message.
            StateFileDamaged: the plan has lost splits.
        """
        missing = expected = 0
        found = []
        splits = read_splits(self.storage, planned.uri)
        if len(splits) != planned.splits:
            told = f"{len(splits)} of {planned.splits} splits"
            raise damaged(layout.splits_file(planned.uri), told)
        for split in splits:
            for sub_split in split.sub_splits:
                expected += 1
                path = layout.message_file(planned.uri, sub_split.id)
                if self.storage.exists(path):
                    found.append(read_stored(self.storage, path, CommitMessage))
                else:
                    missing += 1
        if missing:
            raise WindowIncomplete(
                pipeline=self.config.name,
                sequence=planned.sequence,
                missing=missing,
                expected=expected,
                command=self._continuing(planned.sequence),
            )
        return iter(found)

    def _continuing(self, sequence: int) -> str:
        """Return the command that continues a window: a load only continues the open one."""
        if self.ledger.windows.get(sequence).sealed:
            return command("replay", self.config.name, sequence)
        return command("load", self.config.name)

    def _undertaken(
        self, take: Callable[[], Taken], now: datetime
    ) -> tuple[Taken, tuple[PlannedWindow, ...]]:
        """Take windows and plan them; a window that cannot be planned is given back.

        If this drops the window of an earlier run, this run takes its own.
        """
        while True:
            taken = take()
            try:
                return taken, self._planned(taken, now)
            except TerminalError:
                dropped = [self._give_back(item) for item in taken.windows]
                if not (taken.goes_on and any(dropped)):
                    raise

    def _give_back(self, taken: WindowState) -> bool:
        sequence = taken.window.sequence
        lost = self._pins.lost_plan(sequence)
        return self.ledger.windows.give_back(sequence, taken.attempt, lost_plan=lost)

    def _planned(self, taken: Taken, now: datetime) -> tuple[PlannedWindow, ...]:
        """Plan the windows one after the other; all of them are renewed meanwhile."""
        attempts = {item.window.sequence: item.attempt for item in taken.windows}
        with renewing_windows(self.ledger, attempts, self.config.execute.claim_timeout):
            return tuple(self._plan_window(item, taken.pin, now) for item in taken.windows)

    def _plan_window(self, taken: WindowState, pin: Pin, now: datetime) -> PlannedWindow:
        window = taken.window
        digest = self._pins.digest(taken, self._pins.of(taken, pin))
        uri = layout.plan_root(self.roots.work, window.sequence, digest)
        is_new = not self.storage.exists(layout.plan_file(uri))
        if not has_plan(self.storage, uri):
            with self._pins.naming(taken):
                scan, splits = self._scan(window, pin, now, digest)
            self._write_plan(uri, scan, splits)
        scan = read_plan(self.storage, uri)
        self.ledger.plans.record(scan, uri)
        names = self._pins.names
        if taken.sealed and taken.plan_digest == digest:
            if self._is_told(uri) and not names.is_silent(taken):
                return _planned(taken, digest, uri, scan, (0, 0))
            # The messages are in effect even if their files were moved or swept.
            self._drop(taken, uri, names.spent)
        elif not is_new:
            self._drop(taken, uri, names.hollow)
        return _planned(taken, digest, uri, scan, self._pending(uri, scan.totals))

    def _scan(
        self, window: Window, pin: Pin, now: datetime, digest: str | None = None
    ) -> tuple[ScanPlan, tuple[Split, ...]]:
        """Plan a window, and compare its columns with those of the window before.

        Raises:
            DeletesUnplaced: it may tell of deletes without the partition of the row.
            KindsMixed: it has `_change_type`, and the window before has not, or the other way.
            ColumnsDrifted: `target.evolve` does not allow other columns.
        """
        check_deletes(self.config)
        before = self._pin_before(window)
        if before is not None:
            check_kinds(self.config, before, self.source.reading.schema(pin).names)
        scan, splits = self._scanner.scan(window, pin, now, digest)
        beside = before or self._pin_beside(window)
        if beside is not None:
            check_columns(self.config, beside, scan.pin)
        columns = notes_on_columns(before, scan.pin) if before is not None else ()
        more = (*self._passed_over(scan), *columns, *self._before_the_start(window))
        return replace(scan, notes=(*scan.notes, *more)), splits

    def _before_the_start(self, window: Window) -> Iterator[str]:
        """Yield that a rebuild takes in what loads have left out."""
        state = self.ledger.pipeline.find()
        first = state.first_start if state is not None else None
        if window.kind is WindowKind.REBUILD and first is not None:
            yield (
                "a rebuild reads partitions whole, also the rows of them that are from before "
                "`source.start`"
            )

    def _passed_over(self, scan: ScanPlan) -> Iterator[str]:
        """Yield the command for all partitions that passed over commits may have changed."""
        listed = scan.record.listed if scan.record else Listed()
        known = self.ledger.partitions.all() if listed.removed else ()
        removed = partitions_at(self.config, listed.removed or (), known)
        concerned = tuple(dict.fromkeys((*removed, *(listed.brought or ()))))
        if concerned:
            # A row that moved is in one partition only if both of them are read again together.
            again = rebuild_of(self.config.name, concerned)
            yield (
                f"after this load, {again} reads the partitions that commits passed over may have "
                "changed as they stand, to be published again"
            )

    def _pin_before(self, window: Window) -> Pin | None:
        """Return how the window before was read, to whose rows this one adds; None if to none."""
        if not window.kind.moves_checkpoint or window.kind.replaces_everything:
            return None
        before = self.ledger.windows.before(window.sequence)
        uri = self.ledger.plans.uri(before.window.sequence) if before else None
        if uri is not None:
            # A plan that is gone, or cannot be read any more, is told elsewhere.
            with suppress(TerminalError):
                return read_plan(self.storage, uri).pin
        return None

    def _pin_beside(self, window: Window) -> Pin | None:
        """Return how the nearest other window was read, beside whose rows those of this one stand.

        None if every window may have its own columns, or this one replaces all others.
        """
        if self.config.target.evolution == "widen" or window.kind.replaces_everything:
            return None
        sealed = [item.window for item in self.ledger.windows.all() if item.sealed]
        anew = max((item.sequence for item in sealed if item.kind.replaces_everything), default=0)
        near = sorted(
            (item.sequence for item in sealed if item.sequence >= anew),
            key=lambda number: abs(number - window.sequence),
        )
        for number in near if window.sequence > anew else ():
            uri = self.ledger.plans.uri(number) if number != window.sequence else None
            if uri is not None:
                with suppress(TerminalError):
                    return read_plan(self.storage, uri).pin
        return None

    def _drop(self, taken: WindowState, uri: str, of: Callable[[str], Sequence[str]]) -> None:
        """Delete messages whose files are gone, so that their sub-splits are staged again.

        No sweep of a window begins once it is taken; if the lock is free, earlier ones have ended.

        Raises:
            PartitionBusy: a sweep is at work (Transient).
        """
        lock = layout.window_lock(self.roots.work, taken.window.sequence)
        with self.storage.lock(lock, str(taken.owner)):
            dropped = of(uri)
            for path in dropped:
                self.storage.delete(path)
            if dropped:
                self.storage.sync(layout.messages_root(uri))

    def _is_told(self, uri: str) -> bool:
        """Return whether the announce of a plan has its file; otherwise it is written again."""
        return bool(announces_in(self.storage, uri))

    @property
    def _taker(self) -> Taker:
        drafting = Drafting(self.config, self.ledger, self.source, self.watch)
        abandoner = Abandoner(self.roots, self.ledger, self.storage)
        return Taker(
            self.config, self.ledger, self.life_of, self.watch, self._pins, drafting, abandoner
        )

    @property
    def _pins(self) -> Pins:
        defers = copied_because(self.config) is None
        names = PlanNames(self.roots, self.ledger, self.storage, defers)
        return Pins(self.ledger, self.storage, self.source, names, self._scanner, self.changed)

    @property
    def _scanner(self) -> Scanner:
        work = self.roots.work
        read = functools.partial(erasures, self.storage, work)
        newest = newest_erasure(self.storage, work)
        return Scanner(self.config, self.source, newest, read, self._checkpoint)

    def _checkpoint(self) -> Instant | None:
        state = self.ledger.pipeline.find()
        return None if state is None else state.checkpoint

    def _write_plan(self, uri: str, scan: ScanPlan, splits: Sequence[Split]) -> None:
        """Write the splits first; if only one of the two files was lost, the other is kept."""
        write_splits(self.storage, uri, splits)
        self.storage.write_once(layout.plan_file(uri), pretty(scan.to_json()))

    def _pending(self, uri: str, totals: PlanTotals) -> tuple[int, int]:
        """Count the splits that lack a message, and their bytes."""
        done = {
            layout.sub_split_of_message(name)
            for name in self.storage.list_files(layout.messages_root(uri))
        }
        if not done:
            # Reading a plan of many files takes long, and is not needed for a new one.
            return totals.splits, totals.bytes
        pending = [
            split
            for split in read_splits(self.storage, uri)
            if any(part.id not in done for part in split.sub_splits)
        ]
        return len(pending), sum(map(_bytes_of, pending))


def _bytes_of(split: Split) -> int:
    """Return the bytes of a split's files; of rows that others handed on, what they weigh."""
    pieces = [piece for part in split.sub_splits for piece in part.pieces]
    return sum(piece.size_bytes for piece in pieces) if pieces else split.weight


def _planned(
    taken: WindowState, digest: str, uri: str, scan: ScanPlan, pending: tuple[int, int]
) -> PlannedWindow:
    return PlannedWindow(
        sequence=taken.window.sequence,
        attempt=taken.attempt,
        digest=digest,
        uri=uri,
        splits=scan.totals.splits,
        pending=pending[0],
        pending_bytes=pending[1],
        sealed=taken.sealed and taken.plan_digest == digest,
    )
