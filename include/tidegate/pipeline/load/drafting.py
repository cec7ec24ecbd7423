"""Draft the window that a run may take: from the ledger, and from the source pinned after it.

Takes no window. The first look fixes where the first window begins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidegate.errors import HistoryChanged, LedgerMoved, TerminalError
from tidegate.model.ledger_rows import PipelineState
from tidegate.model.plan import Pin, Window, WindowKind
from tidegate.model.start import FixedStart
from tidegate.pipeline.load import window_choice
from tidegate.pipeline.load.scanning import volumes_of
from tidegate.pipeline.load.starting import fix_start
from tidegate.plan.limits import limited

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tidegate.config import PipelineConfig
    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import WindowState
    from tidegate.model.run import Run
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
class Drafting:
    """Looks at the ledger and the source of one pipeline, and drafts the windows of a run."""

    config: PipelineConfig
    ledger: Ledger
    source: Source
    watch: Watch

    def seen(self, run: Run, now: datetime) -> Seen:
        """Compare the files with the ledger, then pin the source."""
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

    def started(self, run: Run, now: datetime) -> Seen:
        """Do the same as `seen`, and fix where the first window begins if that is still open."""
        state = self._known_state()
        if not state.started and (start := self._start(state, now)):
            self.ledger.pipeline.start_at(start.boundary, start.source_identity)
            # Another run may have fixed it at a newer head than this one saw.
            state = self._known_state()
        return self._seen_of(state, run, now)

    def previewed(self, run: Run, now: datetime) -> Seen:
        """Return what a load would see; the ledger is left as it is.

        Before the first load it writes the boundary of `source.start` to the storage, which should
        be one that keeps its files in memory.

        Raises:
            LedgerBehind: the files know more than the ledger.
        """
        state = self.watch.check_newest_window() or _unregistered(self.config)
        if not state.started and (start := self._start(state, now)):
            state = replace(
                state,
                started=True,
                first_start=start.boundary,
                checkpoint=start.boundary,
                source_identity=start.source_identity,
            )
        return self._seen_of(state, run, now)

    def _start(self, state: PipelineState, now: datetime) -> FixedStart | None:
        """Write down the boundary that `source.start` stands for; None if it is not known yet.

        It is looked up in the whole source, not only within the first run's interval: changes
        between that interval and the start would otherwise arrive later as new ones. While the
        start lies in the future, the changes before it are not complete.
        """
        if self.waits(state, now):
            return None
        pin = self.source.timeline.pin(now, state.source_identity)
        # `latest` can be fixed in an empty source: everything that arrives is after it.
        if pin.head is None and self.config.source.start.kind != "latest":
            return None
        boundary = self.source.timeline.first_checkpoint(pin) if pin.head else None
        found = FixedStart(boundary, pin.identity)
        return fix_start(self.watch.storage, self.watch.roots.work, found)

    def waits(self, state: PipelineState, now: datetime) -> str | None:
        """Return why a pipeline may not begin yet; None once it may."""
        start = self.config.source.start.time
        if state.started or start is None or start <= now:
            return None
        return f"source.start lies in the future ({start:%Y-%m-%dT%H:%M:%SZ})"

    def is_behind(self, run: Run, seen: Seen, sealed: Sequence[WindowState]) -> bool:
        """Return whether the run's interval was taken in before, so that it takes nothing new."""
        start = self.config.source.start.time
        return window_choice.is_behind(run.interval, seen.state, sealed, start)

    def sealed_for(self, run: Run) -> Sequence[WindowState]:
        """Return the sealed windows that the run replays."""
        return self.ledger.windows.sealed_for(run.interval) if run.interval else ()

    def ahead(self, run: Run, seen: Seen, now: datetime) -> tuple[Window | None, Seen]:
        """Draft the window that follows the checkpoint, and return what it was drafted from.

        Lost history is believed only if a second look confirms it: at the first one, the source may
        not have caught up with the ledger.
        """
        try:
            following = self._following(seen)
            lost = following is not None and not following.joins_on
        except TerminalError:
            lost = True
        if lost:
            seen = self._unmoved(seen, self.seen(run, now))
            following = self._following(seen)
        return self._draft(run, seen.pin, following), seen

    def following(self, run: Run, seen: Seen) -> Window | None:
        """Draft the window that follows the checkpoint, from a single look."""
        return self._draft(run, seen.pin, self._following(seen))

    def restarting(self, run: Run, seen: Seen) -> Window | None:
        """Draft a window that begins again at `source.start`; None if the source is empty."""
        return self._draft(run, seen.pin, self.source.timeline.restarting(seen.pin))

    def _unmoved(self, before: Seen, after: Seen) -> Seen:
        if after.state != before.state or after.open != before.open:
            raise LedgerMoved(
                pipeline=self.config.name,
                expected=before.state.progress,
                found=after.state.progress,
            )
        return after

    def _following(self, seen: Seen) -> Following | None:
        """Ask the source what follows the checkpoint; None if it has no instant yet.

        Nothing follows before the start is fixed. A source that has no instant any more is asked,
        too: it cannot go on from a checkpoint.
        """
        is_empty = seen.pin.head is None and seen.state.checkpoint is None
        if is_empty or not seen.state.started:
            return None
        return self.source.timeline.following(seen.pin, seen.state.checkpoint)

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

    def history(self, run: Run, seen: Seen, sealed: Sequence[WindowState]) -> Window | None:
        """Draft a window over the part of the run's interval that lies before `source.start`.

        Returns:
            The window; None if there is no such part, or it was taken before.

        Raises:
            WindowOverlap: a window over a part of it was taken.
            HistoryChanged: the source no longer has these changes as they arrived.
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
            # Older changes may have been cleaned away; the windows of this interval are replayed.
            if any(item.window.interval == run.interval for item in sealed):
                return None
            raise
        return Window(0, found, WindowKind.HISTORY, run.interval, run.id)


def _unregistered(config: PipelineConfig) -> PipelineState:
    """Return the state of a pipeline that was never registered."""
    return PipelineState(
        name=config.name,
        ledger_id="",
        target=config.target.root,
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
