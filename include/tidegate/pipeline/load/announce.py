"""Fold commit messages into contributions and seal their window."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidegate.commit.partition_time import PartitionClock
from tidegate.commit.watermark import advance
from tidegate.errors import NumberPassed, RowsUnaccounted, TerminalError
from tidegate.ledger.announcing import Announcement
from tidegate.model.message import EventTimes, RunSummary
from tidegate.model.run import Announced, PlannedWindow
from tidegate.model.wire import pretty
from tidegate.pipeline.load.balancing import check_balance
from tidegate.pipeline.load.brought import drafted
from tidegate.pipeline.state.again import again_if
from tidegate.pipeline.state.erasures import check_erased
from tidegate.pipeline.state.plan_files import read_plan
from tidegate.pipeline.state.records import Records
from tidegate.stage import layout

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from tidegate.config import PipelineConfig
    from tidegate.ledger import Ledger
    from tidegate.model.instant import Instant
    from tidegate.model.ledger_rows import PipelineState
    from tidegate.model.partition import Partition
    from tidegate.model.plan import ScanPlan
    from tidegate.model.sealed import SealedWindow
    from tidegate.pipeline.load.loader import Loader
    from tidegate.pipeline.state.renewing import Renewing
    from tidegate.storage import Storage


@dataclass(frozen=True)
class Announcer:
    """Seals windows: the one place where checkpoint and watermark move.

    Runs on: the process of one run's step. Called: at least once per run, even without a window.
    Failure: `sealed.json` may exist without its transaction; the next attempt announces what it
    says.
    """

    config: PipelineConfig
    ledger: Ledger
    storage: Storage
    loader: Loader

    def announce(
        self, planned: Sequence[PlannedWindow], now: datetime, held: Renewing
    ) -> Announced:
        """Seal the windows of a run.

        If there are none, let an idle source move the watermark (design §7).

        Args:
            planned: the windows.
            now: clock of the step.
            held: renews them until they are sealed.

        Raises:
            WindowIncomplete: a sub-split has no message.
            RowsUnaccounted: the contributions do not have the rows that were kept.
            ErasedSince: a plan was made before an erasure (Transient).
            FenceLost: a newer attempt took a window over before it was sealed.
        """
        touched: dict[Partition, None] = {}
        summaries = []
        for item in planned:
            partitions, summary = self._seal(item, now)
            touched |= dict.fromkeys(partitions)
            # What stays as it was announced before is no work of this run.
            summaries += [] if item.sealed else [summary]
        held.end()
        if not planned:
            self._idle(now)
        state = self.ledger.pipeline.get()
        protection = self.loader.source.protection
        if state.checkpoint is not None and protection is not None:
            # Also without a window, in case a run announced and died before this point.
            protection.protect(self.config.name, state.checkpoint)
        return Announced(
            partitions=tuple(touched),
            windows=tuple(item.sequence for item in planned),
            watermark=state.watermark_in(self.config.watermark_basis),
            summary=functools.reduce(RunSummary.merged, summaries, RunSummary()),
        )

    def _seal(self, item: PlannedWindow, now: datetime) -> tuple[tuple[Partition, ...], RunSummary]:
        scan = read_plan(self.storage, item.uri)

        def check() -> None:
            if not item.sealed:
                check_erased(self.storage, self.loader.roots.work, scan)

        # No `sealed.json` should say what cannot be announced. Whether it can is decided when the
        # ledger is told, because rows may be erased meanwhile (see `Eraser`).
        check()
        announcements = self._announcements(item, scan, now)
        first = next(announcements)
        # Only the sub-splits of this plan needed them, and all of these are done. They are removed
        # before the ledger is told, because a run that dies afterwards does not come back here.
        self.storage.delete_tree(layout.exchange_root(item.uri))
        # From here on the ledger relies on the messages, on the plan and on the removal. The writer
        # of a message may have died before its name was on the disk.
        for folder in (layout.messages_root(item.uri), item.uri):
            if self.storage.exists(folder):
                self.storage.sync(folder)
        announcements = itertools.chain([first], announcements)
        changed = again_if(
            NumberPassed, lambda: self.ledger.windows.announce(*next(announcements), check)
        )
        summary = self.ledger.windows.get(item.sequence).summary
        return changed, summary or first[0].summary

    def _announcements(
        self, item: PlannedWindow, scan: ScanPlan, now: datetime
    ) -> Iterator[tuple[Announcement, datetime]]:
        """Yield the announcement and its time, written to a file before the ledger is told.

        From the second one on it is written again, because something newer was recorded meanwhile.
        """
        sealed = self._newest_written(item)
        if sealed is not None:
            _check_rows(sealed, item.uri)
        while True:
            sealed = sealed or self._write(item, scan, now)
            announcement = announcement_of(self.config, sealed, item.attempt, item.uri)
            yield announcement, sealed.announced_at
            sealed = None

    def _newest_written(self, item: PlannedWindow) -> SealedWindow | None:
        """Read the file that an earlier attempt wrote, unless it was overtaken since.

        The file of an earlier plan that takes effect again is written again.
        """
        held = self.ledger.windows.get(item.sequence)
        files = Records(self.loader.roots, self.storage).sealed(item.sequence)
        written = [file.sealed for file in files]
        own = [sealed for sealed in written if sealed.plan_digest == item.digest]
        if not own:
            return None
        if own[-1].number > held.number:
            # The ledger was restored since; restorations ignore files with a lower number.
            is_fenced = own[-1].number < self.ledger.pipeline.get().first_fence
            return None if is_fenced else own[-1]
        is_announced = held.sealed and held.plan_digest == item.digest
        # Otherwise a later file would be believed, although its announce never happened.
        is_outdone = written[-1].number > held.number
        return own[-1] if is_announced and not is_outdone else None

    def _write(self, item: PlannedWindow, scan: ScanPlan, now: datetime) -> SealedWindow:
        """Write the next `sealed.json`, with a number that the ledger reserved for this attempt."""
        drafted = self._draft(item, scan, now)
        _check_rows(drafted, item.uri)
        # Drafting takes long; an attempt that has lost its window meanwhile gets no number.
        number = self.ledger.windows.reserve(item.sequence, item.attempt, item.digest)
        drafted = replace(drafted, number=number)
        text = pretty(drafted.to_json())
        for path in (layout.sealed_file(item.uri), layout.sealed_file(item.uri, number)):
            if self.storage.write_once(path, text):
                return drafted
        msg = f"number {number} was given twice"
        raise AssertionError(msg)

    def _draft(self, item: PlannedWindow, scan: ScanPlan, now: datetime) -> SealedWindow:
        state = self.ledger.pipeline.get()
        messages = list(self.loader.messages(item))
        check_balance(self.loader.source.name, (message.noted.balance for message in messages))
        # Only a window that moves the checkpoint to its end moves the watermark.
        end = scan.window.range.end_inclusive
        is_unread = functools.partial(self._is_unread, state, end, now)
        return drafted(scan, messages, state, now, known=self._known, is_unread=is_unread)

    def _known(self) -> tuple[Partition, ...]:
        return tuple(state.partition for state in self.ledger.partitions.all())

    def _idle(self, now: datetime) -> None:
        said, state = self.config.event_time, self.ledger.pipeline.get()
        if said is None or said.when_idle != "advance":
            return
        is_unread = functools.partial(self._is_unread, state, state.checkpoint, now)
        before = state.watermark_step
        step = advance(said, before, EventTimes(), rows_read=0, now=now, is_unread=is_unread)
        if step.value is not None and step.value != state.watermark_in(self.config.watermark_basis):
            self.ledger.pipeline.advance_watermark(step, before)

    def _is_unread(self, state: PipelineState, after: Instant | None, now: datetime) -> bool:
        """Return whether the source has changes after an instant, done or held back.

        A run may only have looked at an old interval, or taken as much as its limits allow.
        """
        timeline = self.loader.source.timeline
        try:
            pin = timeline.pin(now, state.source_identity, after=state.checkpoint)
            if pin.held_back is not None:
                return True
            return pin.head is not None and bool(timeline.following(pin, after).instants)
        except TerminalError:
            # The next load says what is wrong; what was staged is announced all the same.
            return True


def announcement_of(
    config: PipelineConfig, sealed: SealedWindow, attempt: int, uri: str
) -> Announcement:
    """Return the announcement of a sealed window."""
    clock = PartitionClock.of(config)
    return Announcement(
        sequence=sealed.window.sequence,
        attempt=attempt,
        number=sealed.number,
        plan_digest=sealed.plan_digest,
        messages_uri=layout.messages_root(uri),
        contributions=sealed.contributions,
        times={item.partition: clock.bounds(item.partition) for item in sealed.contributions},
        watermark=sealed.watermark,
        summary=sealed.summary,
        late_data=sealed.late_data,
    )


def _check_rows(sealed: SealedWindow, uri: str) -> None:
    """Check that every kept row is in exactly one partition, by path as in the ledger."""
    by_path = {item.partition.path: item.rows for item in sealed.contributions}
    contributed, kept = sum(by_path.values()), sealed.summary.rows_kept
    if contributed != kept:
        raise RowsUnaccounted(
            pipeline=sealed.pipeline,
            sequence=sealed.window.sequence,
            kept=kept,
            contributed=contributed,
            plan=uri,
        )
