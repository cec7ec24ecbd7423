"""Take a run's windows, on a ledger that is read first and a source that is pinned afterwards.

A window is taken only while what was read still holds (design §4). Plans nothing, reads no rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidegate.errors import HistoryChanged, LedgerMoved, TerminalError
from tidegate.ledger.holder import Holder
from tidegate.model.instant import InstantRange
from tidegate.model.ledger_rows import PipelineState
from tidegate.model.plan import Pin, Window, WindowKind
from tidegate.model.run import Look, Run
from tidegate.model.start import Start
from tidegate.pipeline.load import window_choice
from tidegate.pipeline.load.scanning import volumes_of
from tidegate.pipeline.load.starting import fix_start
from tidegate.pipeline.state.again import again_if
from tidegate.plan.limits import limited

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from tidegate.config import PipelineConfig
    from tidegate.ledger import Ledger
    from tidegate.ledger.holder import Life
    from tidegate.model.ledger_rows import WindowState
    from tidegate.model.partition import Partition
    from tidegate.pipeline.load.pins import Pins
    from tidegate.pipeline.state.behind import Watch
    from tidegate.source.protocol import Source
    from tidegate.source.timeline import Following


@dataclass(frozen=True)
class Seen:
    """What a decision is made on."""

    state: PipelineState
    open: WindowState | None
    pin: Pin
    """Made after the ledger was read, so that it is never older than the checkpoint."""


@dataclass(frozen=True)
class Taken:
    """The windows of a run, and the source as the run saw it."""

    pin: Pin
    windows: tuple[WindowState, ...]
    goes_on: bool = False
    """Whether the first of them stood open before."""


@dataclass(frozen=True)
class Draft:
    """What a load would go on with or take."""

    window: Window | None
    pin: Pin
    waits: str | None
    """What it waits for, where it takes nothing before that."""


@dataclass(frozen=True)
class Taker:
    """Takes the windows of one pipeline.

    Runs on: the process of one run's first step. Called: at least once per run.
    Failure: a window that was taken stays taken, and the next attempt goes on with it. Where the
    ledger moved between reading it and taking, nothing was taken.
    """

    config: PipelineConfig
    ledger: Ledger
    source: Source
    life_of: Callable[[str], Life]
    """Finds out what became of the run that holds a window."""
    watch: Watch
    pins: Pins

    def look(self, run: Run, now: datetime) -> Look:
        """Return what a run would find, from the source's metadata alone; takes nothing.

        Raises:
            LedgerMoved: others came between each time (Transient).
        """
        return again_if(LedgerMoved, lambda: self._look(run, now))

    def take(self, run: Run, now: datetime) -> Taken:
        """Take the run's window, or those that it replays; go on with one that is open.

        Raises:
            WindowOpen: another run works on the pipeline's open window (Transient).
            LedgerMoved: others came between each time (Transient).
        """
        return again_if(LedgerMoved, lambda: self._take(run, now))

    def replay(self, sequence: int, run: Run, now: datetime) -> Taken:
        """Take one window again.

        Raises:
            WindowNotFound: it was never taken.
            StateGone: it can no longer be read; nothing was taken.
            WindowOpen: another run works on it (Transient).
            LedgerMoved: others came between each time (Transient).
        """

        def again() -> Taken:
            seen = self._seen(run, now)
            window = self.ledger.windows.get(sequence)
            return self._resumed(seen, [window], self._holder(run, now))

        return again_if(LedgerMoved, again)

    def rebuild(self, partitions: Sequence[Partition], run: Run, now: datetime) -> Taken:
        """Take a window that reads partitions whole, as of the checkpoint.

        Without one before the first load. The ledger need not know the partitions: the source may
        have brought rows for one in a file that was written anew.

        Raises:
            StateGone: what stood at the checkpoint is not kept any more; nothing was taken.
            WindowOpen: another run works on the pipeline's open window (Transient).
            LedgerMoved: others came between each time (Transient).
        """
        return again_if(LedgerMoved, lambda: self._rebuild(partitions, run, now))

    def preview(self, run: Run, now: datetime) -> Draft:
        """Draft the window that a load would go on with or take; takes nothing (PC-C08).

        Before the first load it writes what `source.start` comes to into the storage, which should
        be one that only looks.
        """
        state = self.ledger.pipeline.find() or _unregistered(self.config)
        if not state.started and (start := self._start(state, now)):
            state = replace(
                state,
                started=True,
                first_start=start.boundary,
                checkpoint=start.boundary,
                source_identity=start.source_identity,
            )
        seen = self._seen_of(state, run, now)
        if seen.open is not None and not self.pins.is_lost(seen.open, seen.pin):
            return Draft(seen.open.window, seen.pin, None)
        sealed = self._sealed_for(run)
        if self._is_behind(run, seen, sealed):
            draft = self._history(run, seen, sealed)
        else:
            draft = self._draft(run, seen.pin, self._following(state, seen.pin))
        return Draft(draft, seen.pin, self._waits(state, now))

    def _look(self, run: Run, now: datetime) -> Look:
        held = self.ledger.windows.open()
        if held is not None:
            return Look(
                "changes", f"window {held.window.sequence} {held.window.range} is open and goes on"
            )
        # A sensor may only ever look: `latest` must not move from one look to the next.
        seen = self._started(run, now)
        if waits := self._waits(seen.state, now):
            return Look("none", waits)
        sealed = self._sealed_for(run)
        if self._is_behind(run, seen, sealed):
            return self._look_behind(run, seen, sealed)
        found, seen = self._ahead(run, seen, now)
        if found is None:
            after = seen.state.checkpoint.id if seen.state.checkpoint else "the beginning"
            return Look("none", f"nothing after {after} up to {run.end_exclusive or 'the head'}")
        return Look("changes", f"instants {found.range}")

    def _take(self, run: Run, now: datetime) -> Taken:
        seen, holder = self._started(run, now), self._holder(run, now)
        sealed = self._sealed_for(run)
        if seen.open is not None:
            return self._continued(run, seen, seen.open, sealed, holder)
        if self._is_behind(run, seen, sealed):
            draft = self._history(run, seen, sealed)
        else:
            (draft, seen), sealed = self._ahead(run, seen, now), ()
        if draft is None:
            return self._resumed(seen, sealed, holder)
        self._check_readable(seen, sealed)
        fresh = self.ledger.windows.take(draft, seen.state, holder)
        again = [self.ledger.windows.resume(item.window.sequence, holder, None) for item in sealed]
        return Taken(seen.pin, (fresh, *again))

    def _rebuild(self, partitions: Sequence[Partition], run: Run, now: datetime) -> Taken:
        seen, holder = self._seen(run, now), self._holder(run, now)
        if seen.state.checkpoint is None:
            return Taken(seen.pin, ())
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
        self.pins.of_rebuild(draft, seen.pin)
        return Taken(seen.pin, (self.ledger.windows.take(draft, seen.state, holder),))

    def _continued(
        self,
        run: Run,
        seen: Seen,
        held: WindowState,
        sealed: Sequence[WindowState],
        holder: Holder,
    ) -> Taken:
        """Go on with the open window, and with what its run replays besides."""
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
        """Look for what windows read, before any of them is taken again.

        Raises:
            LedgerBehind: one was announced since the ledger in use was saved: another announce
                would get a number that was given before.
        """
        self.watch.check_windows(item.window.sequence for item in windows)
        for item in windows:
            self.pins.of(item, seen.pin)

    def _seen(self, run: Run, now: datetime) -> Seen:
        """Compare files and ledger, and look at the source then."""
        return self._seen_of(self._known_state(), run, now)

    def _seen_of(self, state: PipelineState, run: Run, now: datetime) -> Seen:
        held = self.ledger.windows.open()
        pin = self.source.timeline.pin(
            now, state.source_identity, run.end_exclusive, state.checkpoint
        )
        return Seen(state, held, pin)

    def _known_state(self) -> PipelineState:
        """Return the ledger's state, once the files were compared with it.

        Raises:
            LedgerBehind: the files know more than the ledger.
            LedgerMoved: the ledger is another one since the run began (Transient).
        """
        state = self.watch.check_newest_window()
        if state is None:
            raise LedgerMoved(
                pipeline=self.config.name,
                expected="the pipeline as it was registered",
                found="no such pipeline",
            )
        return state

    def _started(self, run: Run, now: datetime) -> Seen:
        """Fix the first window's start before the first window is taken."""
        state = self._known_state()
        if not state.started and (start := self._start(state, now)):
            self.ledger.pipeline.start_at(start.boundary, start.source_identity)
            # Another run may have fixed it, by a younger head than this one saw.
            state = self._known_state()
        return self._seen_of(state, run, now)

    def _start(self, state: PipelineState, now: datetime) -> Start | None:
        """Write down what `source.start` comes to; None where that cannot be said yet.

        The whole source says it, not what the first run's interval leaves of it: what lies between
        that interval and the start would come as new later. As long as the start lies in the
        future, what comes before it is not there yet.
        """
        if self._waits(state, now):
            return None
        pin = self.source.timeline.pin(now, state.source_identity)
        # After nothing comes everything: where nothing stands yet, `latest` is fixed as well.
        if pin.head is None and self.config.source.start.kind != "latest":
            return None
        boundary = self.source.timeline.first_checkpoint(pin) if pin.head else None
        found = Start(boundary, pin.identity)
        return fix_start(self.watch.storage, self.watch.roots.work, found)

    def _waits(self, state: PipelineState, now: datetime) -> str | None:
        """Say that the time has not come at which a pipeline is to begin; None once it has."""
        start = self.config.source.start.time
        if state.started or start is None or start <= now:
            return None
        return f"source.start lies in the future ({start:%Y-%m-%dT%H:%M:%SZ})"

    def _is_behind(self, run: Run, seen: Seen, sealed: Sequence[WindowState]) -> bool:
        start = self.config.source.start.time
        return window_choice.is_behind(run.interval, seen.state, sealed, start)

    def _sealed_for(self, run: Run) -> Sequence[WindowState]:
        return self.ledger.windows.sealed_for(run.interval) if run.interval else ()

    def _holder(self, run: Run, now: datetime) -> Holder:
        return Holder(run.owner, now, self.config.execute.claim_timeout, self.life_of)

    def _ahead(self, run: Run, seen: Seen, now: datetime) -> tuple[Window | None, Seen]:
        """Draft the window that follows the checkpoint, if there is one, and what it rests on.

        That history was lost is believed only if a second look says so, too: the first one may
        have met a source that had not caught up with the ledger.
        """
        try:
            following = self._following(seen.state, seen.pin)
            lost = following is not None and not following.joins_on
        except TerminalError:
            lost = True
        if lost:
            seen = self._unmoved(seen, self._seen(run, now))
            following = self._following(seen.state, seen.pin)
        return self._draft(run, seen.pin, following), seen

    def _unmoved(self, before: Seen, after: Seen) -> Seen:
        if after.state != before.state or after.open != before.open:
            raise LedgerMoved(
                pipeline=self.config.name,
                expected=before.state.progress,
                found=after.state.progress,
            )
        return after

    def _following(self, state: PipelineState, pin: Pin) -> Following | None:
        """Ask the source what follows the checkpoint; None where it has no instant.

        Nothing does before the start is fixed: what has come since then is the next look's.
        """
        if pin.head is None or not state.started:
            return None
        return self.source.timeline.following(pin, state.checkpoint)

    def _draft(self, run: Run, pin: Pin, following: Following | None) -> Window | None:
        if following is None:
            return None
        found = window_choice.ahead(following.instants, following.start, run.end_exclusive)
        if found is None:
            return None
        if not following.kind.reads_whole:
            limits = self.config.source.window_limits
            found = limited(found, following.instants, volumes_of(self.source, pin), limits)
        return Window(0, found, following.kind, run.interval, run.id)

    def _history(self, run: Run, seen: Seen, sealed: Sequence[WindowState]) -> Window | None:
        """Draft the window of what `start` left out of the run's interval, if it is not taken yet.

        Raises:
            WindowOverlap: a window over a part of it was taken.
            HistoryChanged: it is not there as it came.
        """
        if run.interval is None or seen.state.first_start is None:
            return None
        first = seen.state.first_start
        found = window_choice.history(
            self.source.timeline.history(seen.pin, first, run.interval),
            run.interval,
            self.ledger.windows.all(),
            self.config.name,
        )
        if found is None:
            return None
        kept = self.source.kept
        try:
            if kept is not None:
                kept.check_history(seen.pin, first, run.interval)
        except HistoryChanged:
            # What was left out may be cleaned away; windows of this very interval are done again.
            if any(item.window.interval == run.interval for item in sealed):
                return None
            raise
        return Window(0, found, WindowKind.HISTORY, run.interval, run.id)

    def _look_behind(self, run: Run, seen: Seen, sealed: Sequence[WindowState]) -> Look:
        if self._history(run, seen, sealed) is not None:
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


def _unregistered(config: PipelineConfig) -> PipelineState:
    """Return the state of a pipeline that no step has made known yet."""
    return PipelineState(
        name=config.name,
        ledger_id="",
        target=config.target.path,
        source_identity=None,
        started=False,
        first_start=None,
        checkpoint=None,
        watermark=None,
        watermark_step=None,
        next_sequence=1,
        next_number=1,
        first_fence=0,
    )
