"""From the source's head to announced contributions: window, plan, stage, announce.

Each step can be repeated, by the same run or by another one, and finds what its predecessor left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidegate.errors import WindowIncomplete
from tidegate.ledger.holder import Holder
from tidegate.model.instant import InstantRange
from tidegate.model.message import CommitMessage
from tidegate.model.plan import Pin, PlanTotals, ScanPlan, Split, Window, WindowKind
from tidegate.model.run import Look, PlannedWindow, Run
from tidegate.model.wire import pretty
from tidegate.pipeline import taking
from tidegate.pipeline.limits import limited
from tidegate.pipeline.plan_files import read_plan, read_splits, write_splits
from tidegate.pipeline.plan_names import PlanNames
from tidegate.pipeline.renewing import renewing_windows
from tidegate.pipeline.scanning import Scanner, pinned_at
from tidegate.stage import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from tidegate.config import PipelineConfig
    from tidegate.ledger import Ledger
    from tidegate.ledger.holder import Life
    from tidegate.model.ledger_rows import PipelineState, WindowState
    from tidegate.model.partition import Partition
    from tidegate.pipeline.work import Roots
    from tidegate.source.protocol import Source
    from tidegate.storage import Storage


@dataclass(frozen=True)
class Preview:
    """What a load would read (PC-C08)."""

    range: InstantRange | None
    """None: there is nothing to take."""
    plan: ScanPlan | None
    splits: tuple[Split, ...]


@dataclass(frozen=True)
class Loader:
    """The first half of a pipeline: once per window.

    Runs on: the process of one run's step. Called: at least once per step and run.
    Failure: a window that was taken stays taken; the next attempt goes on with it, plans to the
    same
    digest, and stages only the sub-splits without a message.
    """

    config: PipelineConfig
    roots: Roots
    ledger: Ledger
    storage: Storage
    source: Source
    life_of: Callable[[str], Life]
    """Finds out what became of the run that holds a window."""

    def look(self, run: Run, now: datetime) -> Look:
        """Say what a run would find, from the source's metadata alone; takes nothing."""
        held = self.ledger.windows.open()
        if held is not None:
            return Look(
                "changes", f"window {held.window.sequence} {held.window.range} is open and goes on"
            )
        pin, _ = self._pin(run, now)
        # A sensor may only ever look: `latest` must not move from one look to the next.
        state = self._started(pin)
        sealed = self.ledger.windows.sealed_for(run.interval) if run.interval else ()
        if taking.is_behind(run.interval, state, sealed):
            return self._look_behind(run, pin, state, sealed)
        found = self._ahead(run, pin, state)
        if found is None:
            return Look(
                "none", f"nothing after {_name(state)} up to {run.end_exclusive or 'the head'}"
            )
        return Look("changes", f"instants {found.range}")

    def plan(self, run: Run, now: datetime) -> tuple[PlannedWindow, ...]:
        """Take the run's window, or those that it replays.

        And make their plans stand in the work directory.

        Returns:
            One entry per window; none when there is nothing to do.

        Raises:
            WindowOpen: another run works on the pipeline's open window (Transient).
        """
        pin, _ = self._pin(run, now)
        taken = self._windows(run, pin, now)
        return tuple(
            replace(planned, taken_over=not item.sealed and item.window.run != run.id)
            for item, planned in zip(taken, self._plan_windows(taken, pin, now), strict=True)
        )

    def replay(self, sequence: int, run: Run, now: datetime) -> tuple[PlannedWindow, ...]:
        """Plan one window again, with the configuration as it is now."""
        pin, _ = self._pin(run, now)
        taken = self.ledger.windows.resume(sequence, self._holder(run, now))
        return self._plan_windows([taken], pin, now)

    def rebuild(
        self, partitions: Sequence[Partition], run: Run, now: datetime
    ) -> tuple[PlannedWindow, ...]:
        """Take a window that reads partitions whole, as of the checkpoint.

        None before the first load.

        Raises:
            PartitionNotFound: no window ever touched one of them.
        """
        pin, state = self._pin(run, now)
        if state.checkpoint is None:
            return ()
        for partition in partitions:
            self.ledger.partitions.get(partition)
        draft = Window(
            sequence=0,
            range=InstantRange(None, state.checkpoint),
            kind=WindowKind.REBUILD,
            interval=None,
            run=run.id,
            partitions=tuple(sorted(partitions, key=lambda item: item.path)),
        )
        holder, held = self._holder(run, now), self.ledger.windows.open()
        if held is not None and held.window.partitions == draft.partitions:
            taken = self.ledger.windows.resume(held.window.sequence, holder)
        else:
            taken = self.ledger.windows.take(draft, state.checkpoint, holder)
        return self._plan_windows([taken], pin, now)

    def preview(self, run: Run, now: datetime) -> Preview:
        """Plan what a run would read; takes no window and writes nothing (PC-C08)."""
        state = self.ledger.pipeline.find()
        identity = state.source_identity if state else None
        pin = self.source.pin(now, identity, run.end_exclusive)
        if state is not None and (held := self.ledger.windows.open()) is not None:
            return Preview(held.window.range, *self._scanner.scan(held.window, pin, now))
        draft = self._ahead(run, pin, state)
        if draft is None:
            return Preview(None, None, ())
        return Preview(draft.range, *self._scanner.scan(draft, pin, now))

    def messages(self, planned: PlannedWindow) -> Iterator[CommitMessage]:
        """Read the commit messages of a plan, in plan order.

        Raises:
            WindowIncomplete: a sub-split has none yet (Transient).
        """
        missing = expected = 0
        found = []
        for split in read_splits(self.storage, planned.uri):
            for sub_split in split.sub_splits:
                expected += 1
                path = layout.message_file(planned.uri, sub_split.id)
                if self.storage.exists(path):
                    found.append(CommitMessage.from_text(self.storage.read_bytes(path)))
                else:
                    missing += 1
        if missing:
            raise WindowIncomplete(
                pipeline=self.config.name,
                sequence=planned.sequence,
                missing=missing,
                expected=expected,
            )
        return iter(found)

    def _pin(self, run: Run, now: datetime) -> tuple[Pin, PipelineState]:
        state = self.ledger.pipeline.find()
        if state is None:
            msg = f"pipeline {self.config.name} was not adopted before its first step"
            raise AssertionError(msg)
        return self.source.pin(now, state.source_identity, run.end_exclusive), state

    def _holder(self, run: Run, now: datetime) -> Holder:
        return Holder(run.owner, now, self.config.execute.claim_timeout, self.life_of)

    def _windows(self, run: Run, pin: Pin, now: datetime) -> list[WindowState]:
        holder = self._holder(run, now)
        held = self.ledger.windows.open()
        if held is not None:
            return [self.ledger.windows.resume(held.window.sequence, holder)]
        state = self._started(pin)
        sealed = self.ledger.windows.sealed_for(run.interval) if run.interval else ()
        if taking.is_behind(run.interval, state, sealed):
            draft = self._history(run, pin, state)
        else:
            draft = self._ahead(run, pin, state)
            sealed = ()
        fresh = [self.ledger.windows.take(draft, state.checkpoint, holder)] if draft else []
        again = [self.ledger.windows.resume(item.window.sequence, holder) for item in sealed]
        return [*fresh, *again]

    def _started(self, pin: Pin) -> PipelineState:
        """Fix the first window's start before the first window is taken.

        `latest` must not move later.
        """
        state = self.ledger.pipeline.find()
        if state is not None and not state.started and pin.head is not None:
            self.ledger.pipeline.start_at(self.source.first_checkpoint(pin), pin.identity)
            state = self.ledger.pipeline.find()
        if state is None:
            msg = f"pipeline {self.config.name} vanished from its ledger"
            raise AssertionError(msg)
        return state

    def _ahead(self, run: Run, pin: Pin, state: PipelineState | None) -> Window | None:
        """Draft the window that follows the checkpoint; None where there is nothing to take."""
        if pin.head is None:
            return None
        started = state is not None and state.started
        checkpoint = state.checkpoint if state and started else self.source.first_checkpoint(pin)
        following = self.source.following(pin, checkpoint)
        found = taking.ahead(following.instants, following.start, run.end_exclusive)
        if found is None:
            return None
        if not following.kind.reads_whole:
            limits = self.config.source.limits
            found = limited(found, following.instants, self.source, limits, pin)
        return Window(0, found, following.kind, run.interval, run.id)

    def _history(self, run: Run, pin: Pin, state: PipelineState) -> Window | None:
        if run.interval is None or state.first_start is None:
            return None
        retained = self.source.history(pin, state.first_start)
        found = taking.history(retained, run.interval, self.ledger.windows.all(), self.config.name)
        return Window(0, found, WindowKind.HISTORY, run.interval, run.id) if found else None

    def _look_behind(
        self, run: Run, pin: Pin, state: PipelineState, sealed: Sequence[WindowState]
    ) -> Look:
        if self._history(run, pin, state) is not None:
            return Look("changes", "history before the first window")
        if sealed:
            names = ", ".join(str(item.window.sequence) for item in sealed)
            return Look(
                "replay", f"windows {names} were taken for this interval and are done again"
            )
        covering = (
            taking.covering(self.ledger.windows.all(), run.interval) if run.interval else None
        )
        where = (
            f"window {covering.window.sequence} of run {covering.window.run}"
            if covering
            else "no window"
        )
        return Look("none", f"the interval lies behind the checkpoint; {where} covers it")

    def _plan_windows(
        self, taken: Sequence[WindowState], pin: Pin, now: datetime
    ) -> tuple[PlannedWindow, ...]:
        """Plan what was taken, one after the other; all of it is kept meanwhile."""
        attempts = {item.window.sequence: item.attempt for item in taken}
        with renewing_windows(self.ledger, attempts, self.config.execute.claim_timeout):
            return tuple(self._plan_window(item, pin, now) for item in taken)

    def _plan_window(self, taken: WindowState, pin: Pin, now: datetime) -> PlannedWindow:
        window = taken.window
        pinned = pinned_at(self.source, pin, window)
        digest = self._names.choose(
            taken, lambda again: self._scanner.digest(window, pinned, again=again)
        )
        uri = layout.plan_root(self.roots.work, window.sequence, digest)
        if not self.storage.exists(layout.plan_file(uri)):
            scan, splits = self._scanner.scan(window, pin, now, digest)
            self._write_plan(uri, scan, splits)
        scan = read_plan(self.storage, uri)
        self.ledger.windows.record_plan(scan, uri)
        if taken.sealed and taken.plan_digest == digest:
            return _planned(taken, digest, uri, scan, (0, 0))
        return _planned(taken, digest, uri, scan, self._pending(uri, scan.totals))

    @property
    def _names(self) -> PlanNames:
        return PlanNames(self.roots, self.ledger, self.storage)

    @property
    def _scanner(self) -> Scanner:
        return Scanner(self.config, self.source)

    def _write_plan(self, uri: str, scan: ScanPlan, splits: Sequence[Split]) -> None:
        """Write the splits first: where `plan.json` stands, the plan is complete."""
        write_splits(self.storage, uri, splits)
        self.storage.write_once(layout.plan_file(uri), pretty(scan.to_json()))

    def _pending(self, uri: str, totals: PlanTotals) -> tuple[int, int]:
        """Count the splits that lack a message, and their bytes."""
        done = {
            layout.sub_split_of_message(name)
            for name in self.storage.list_files(layout.messages_root(uri))
        }
        if not done:
            # A plan of many files takes long to read, and a new one need not be.
            return totals.splits, totals.bytes
        pending = [
            split
            for split in read_splits(self.storage, uri)
            if any(part.id not in done for part in split.sub_splits)
        ]
        parts = (part for split in pending for part in split.sub_splits)
        return len(pending), sum(piece.size_bytes for part in parts for piece in part.pieces)


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


def _name(state: PipelineState) -> str:
    return state.checkpoint.id if state.checkpoint else "the beginning"
