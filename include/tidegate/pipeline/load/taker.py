"""Take the windows of a run: a new one, the open one, or those that it replays.

A window is taken only if the ledger has not moved since it was read (design §4). Plans nothing and
reads no rows.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidegate.errors import (
    AbandonRefused,
    FenceLost,
    LedgerMoved,
    RebuildOfOverwritten,
    WindowNotFound,
)
from tidegate.ledger.holder import Holder
from tidegate.model.counting import counting
from tidegate.model.instant import InstantRange
from tidegate.model.plan import Pin, Window, WindowKind
from tidegate.model.run import Look, Run
from tidegate.pipeline.load import window_choice
from tidegate.pipeline.state.again import again_if

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from tidegate.config import PipelineConfig
    from tidegate.ledger import Ledger
    from tidegate.ledger.holder import Life
    from tidegate.model.ledger_rows import WindowState
    from tidegate.model.partition import Partition
    from tidegate.pipeline.load.abandoning import Abandoner
    from tidegate.pipeline.load.drafting import Drafting, Seen
    from tidegate.pipeline.load.pins import Pins
    from tidegate.pipeline.state.behind import Watch


@dataclass(frozen=True)
class Taken:
    """The windows of a run, and the source as the run saw it."""

    pin: Pin
    windows: tuple[WindowState, ...]
    goes_on: bool = False
    """Whether the first of them was open before."""


@dataclass(frozen=True)
class WindowDraft:
    """The window that a load would continue or take."""

    window: Window | None
    pin: Pin
    waits: str | None
    """What the pipeline waits for before it takes its first window, or its next one."""
    replayed: tuple[WindowState, ...] = ()
    """Sealed windows that it would go through again."""


@dataclass(frozen=True)
class Taker:
    """Takes the windows of one pipeline.

    Runs on: the process of one run's first step. Called: at least once per run.
    Failure: a window that was taken stays taken, and the next attempt goes on with it. If the
    ledger moved after it was read, nothing is taken.
    """

    config: PipelineConfig
    ledger: Ledger
    life_of: Callable[[str], Life]
    """Finds out what became of the run that holds a window."""
    watch: Watch
    pins: Pins
    drafting: Drafting
    abandoner: Abandoner

    def look(self, run: Run, now: datetime) -> Look:
        """Return what a run would find, from the source's metadata alone; takes nothing.

        Raises:
            LedgerMoved: other runs changed the ledger at each attempt (Transient).
        """
        return again_if(LedgerMoved, lambda: self._look(run, now))

    def take(self, run: Run, now: datetime) -> Taken:
        """Take the run's window, or those that it replays; go on with one that is open.

        Raises:
            WindowOpen: another run works on the pipeline's open window (Transient).
            LedgerMoved: other runs changed the ledger at each attempt (Transient).
        """
        return again_if(LedgerMoved, lambda: self._take(run, now))

    def replay(self, sequence: int, run: Run, now: datetime) -> Taken:
        """Take one window again.

        Raises:
            WindowNotFound: it was never taken.
            StateGone: it can no longer be read; nothing was taken.
            WindowOpen: another run works on it (Transient).
            LedgerMoved: other runs changed the ledger at each attempt (Transient).
        """

        def again() -> Taken:
            seen, holder = self.drafting.seen(run, now), self._holder(run, now)
            self._finish_abandoning(seen, holder)
            return self._resumed(seen, [self.ledger.windows.get(sequence)], holder)

        return again_if(LedgerMoved, again)

    def rebuild(self, partitions: Sequence[Partition], run: Run, now: datetime) -> Taken:
        """Take a window that reads partitions whole, as of the checkpoint.

        Files that the checkpoint knows and that changed since are read as they stand, if the source
        cannot do otherwise. Before the first load there is no checkpoint, and nothing is taken. The
        ledger need not know the partitions: a file that was rewritten in the source may have rows
        for new ones.

        Raises:
            RebuildOfOverwritten: the target has the rows of the last window only.
            StateGone: the source no longer keeps its state at the checkpoint; nothing was taken.
            RebuildTooNarrow: files changed, and it leaves out partitions of their rows.
            WindowOpen: another run works on the pipeline's open window (Transient).
            LedgerMoved: other runs changed the ledger at each attempt (Transient).
        """
        return again_if(LedgerMoved, lambda: self._rebuild(partitions, run, now))

    def reset(self, run: Run, now: datetime) -> Taken:
        """Take a window that begins again at `source.start`, and replaces everything before it.

        Before the first load there is nothing to replace, and nothing is taken.

        Raises:
            WindowOpen: the pipeline's open window has to be finished before (Transient).
            LedgerMoved: other runs changed the ledger at each attempt (Transient).
        """
        return again_if(LedgerMoved, lambda: self._reset(run, now))

    def preview(self, run: Run, now: datetime) -> WindowDraft:
        """Draft the window that a load would go on with or take; takes nothing (PC-C08).

        Before the first load it writes the boundary of `source.start` to the storage, which should
        be one that keeps its files in memory.
        """
        seen = self.drafting.previewed(run, now)
        if seen.open is not None and not self.pins.is_lost(seen.open, seen.pin):
            return WindowDraft(seen.open.window, seen.pin, None)
        sealed = self.drafting.sealed_for(run)
        if self.drafting.is_behind(run, seen, sealed):
            draft = self.drafting.history(run, seen, sealed)
        else:
            draft, sealed = self.drafting.following(run, seen), ()
        waits = self.drafting.waits(seen.state, now)
        if draft is None:
            waits = waits or seen.pin.held_back
        return WindowDraft(draft, seen.pin, waits, tuple(sealed))

    def _look(self, run: Run, now: datetime) -> Look:
        held = self.ledger.windows.open()
        if held is not None:
            return Look(
                "changes", f"window {held.window.sequence} {held.window.range} is open and goes on"
            )
        # The start is fixed by a look, too: `latest` must not move from one look to the next.
        seen = self.drafting.started(run, now)
        if waits := self.drafting.waits(seen.state, now):
            return Look("none", waits)
        sealed = self.drafting.sealed_for(run)
        if self.drafting.is_behind(run, seen, sealed):
            return self._look_behind(run, seen, sealed)
        found, seen = self.drafting.ahead(run, seen, now)
        if found is None:
            after = seen.state.checkpoint.id if seen.state.checkpoint else "the beginning"
            detail = f"nothing after {after} up to {run.end_exclusive or 'the head'}"
            held_back = seen.pin.held_back
            return Look("none", f"{detail}; {held_back}" if held_back else detail)
        return Look("changes", f"instants {found.range}")

    def _take(self, run: Run, now: datetime) -> Taken:
        seen, holder = self.drafting.started(run, now), self._holder(run, now)
        self._finish_abandoning(seen, holder)
        sealed = self.drafting.sealed_for(run)
        if seen.open is not None:
            return self._continued(run, seen, seen.open, sealed, holder)
        if self.drafting.is_behind(run, seen, sealed):
            draft = self.drafting.history(run, seen, sealed)
        else:
            (draft, seen), sealed = self.drafting.ahead(run, seen, now), ()
        if draft is None:
            return self._resumed(seen, sealed, holder)
        self._check_readable(seen, sealed)
        fresh = self.ledger.windows.take(draft, seen.state, holder)
        again = [self.ledger.windows.resume(item.window.sequence, holder, None) for item in sealed]
        return Taken(seen.pin, (fresh, *again))

    def _rebuild(self, partitions: Sequence[Partition], run: Run, now: datetime) -> Taken:
        seen, holder = self.drafting.seen(run, now), self._holder(run, now)
        self._finish_abandoning(seen, holder)
        if seen.state.checkpoint is None:
            return Taken(seen.pin, ())
        if self.config.target.write == "overwrite":
            raise self._not_overwritten(partitions)
        draft = Window(
            sequence=0,
            range=InstantRange(None, seen.state.checkpoint),
            kind=WindowKind.REBUILD,
            interval=None,
            run=run.id,
            partitions=tuple(sorted(partitions, key=lambda item: item.path)),
        )
        if seen.open is not None and seen.open.window.partitions == draft.partitions:
            return self._continued(run, seen, seen.open, (), holder)
        end = self.pins.of_rebuild(draft, seen.pin).head
        if end is not None and end.id != seen.state.checkpoint.id:
            draft = replace(draft, range=InstantRange(seen.state.checkpoint, end))
        return Taken(seen.pin, (self.ledger.windows.take(draft, seen.state, holder),))

    def _not_overwritten(self, partitions: Sequence[Partition]) -> RebuildOfOverwritten:
        """Return the error that names the window whose rows the partitions have."""
        brought = [
            item.window
            for partition in partitions
            for item in counting(self.ledger.contributions.to(partition))
        ]
        return RebuildOfOverwritten(
            pipeline=self.config.name,
            partitions=", ".join(map(str, partitions)),
            window=str(max(brought, default="WINDOW")),
        )

    def _reset(self, run: Run, now: datetime) -> Taken:
        seen, holder = self.drafting.seen(run, now), self._holder(run, now)
        self._finish_abandoning(seen, holder)
        draft = self.drafting.restarting(run, seen) if seen.state.checkpoint else None
        if draft is None:
            return Taken(seen.pin, ())
        if seen.open is not None and seen.open.window.kind is draft.kind:
            return self._continued(run, seen, seen.open, (), holder)
        return Taken(seen.pin, (self.ledger.windows.take(draft, seen.state, holder),))

    def _finish_abandoning(self, seen: Seen, holder: Holder) -> None:
        """Drop the open window if its abandonment has begun, and let the caller look again.

        Raises:
            LedgerMoved: it was dropped (Transient).
        """
        sequence = seen.open.window.sequence if seen.open is not None else None
        if sequence is not None and self.abandoner.has_begun(sequence):
            # Whoever was faster did the same, or announced the window after all.
            with suppress(WindowNotFound, AbandonRefused, FenceLost):
                self.abandoner.finish(sequence, holder)
            raise LedgerMoved(
                pipeline=self.config.name,
                expected=f"window {sequence} open",
                found="it abandoned",
            )

    def _continued(
        self,
        run: Run,
        seen: Seen,
        held: WindowState,
        sealed: Sequence[WindowState],
        holder: Holder,
    ) -> Taken:
        """Go on with the open window, and with those that its run replays beside it."""
        is_own_history = held.window.run == run.id and held.window.kind is WindowKind.HISTORY
        besides = sealed if is_own_history else ()
        self._check_readable(seen, besides)
        first = self.ledger.windows.resume(
            held.window.sequence, holder, seen.state, still_open=True
        )
        again = [self.ledger.windows.resume(item.window.sequence, holder, None) for item in besides]
        return Taken(seen.pin, (first, *again), goes_on=True)

    def _resumed(self, seen: Seen, windows: Sequence[WindowState], holder: Holder) -> Taken:
        self._check_readable(seen, windows)
        taken = (
            self.ledger.windows.resume(item.window.sequence, holder, seen.state) for item in windows
        )
        return Taken(seen.pin, tuple(taken))

    def _check_readable(self, seen: Seen, windows: Sequence[WindowState]) -> None:
        """Check that the source still has what the windows read, before any is taken again.

        Raises:
            LedgerBehind: one was announced after the backup that this ledger was restored from;
                announcing it again would use a number twice.
        """
        self.watch.check_windows(item.window.sequence for item in windows)
        for item in windows:
            self.pins.of(item, seen.pin)

    def _holder(self, run: Run, now: datetime) -> Holder:
        return Holder(run.owner, now, self.config.execute.claim_timeout, self.life_of)

    def _look_behind(self, run: Run, seen: Seen, sealed: Sequence[WindowState]) -> Look:
        if self.drafting.history(run, seen, sealed) is not None:
            return Look("changes", "history before the first window")
        if sealed:
            names = ", ".join(str(item.window.sequence) for item in sealed)
            return Look(
                "replay", f"windows {names} were taken for this interval and are done again"
            )
        covering = (
            window_choice.covering(self.ledger.windows.all(), run.interval)
            if run.interval
            else None
        )
        where = (
            f"window {covering.window.sequence} of run {covering.window.run}"
            if covering
            else "no window"
        )
        return Look("none", f"the interval lies before what comes next; {where} covers it")
