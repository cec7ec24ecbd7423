"""Fold commit messages into contributions and seal their window."""

from __future__ import annotations

import contextlib
import functools
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidegate.commit.partition_time import PartitionClock
from tidegate.commit.watermark import advance, commit_times
from tidegate.config import PipelineConfig
from tidegate.errors import NumberPassed, RowsUnaccounted
from tidegate.ledger.announcing import Announcement
from tidegate.model.ignored_deletes import IgnoredDeletes
from tidegate.model.message import CommitMessage, Contribution, EventTimes, PartFile, RunSummary
from tidegate.model.run import Announced, PlannedWindow
from tidegate.model.sealed import SealedWindow
from tidegate.model.wire import pretty
from tidegate.pipeline.balancing import check_balance
from tidegate.pipeline.plan_files import read_plan
from tidegate.pipeline.records import Records
from tidegate.stage import layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import PipelineState
    from tidegate.model.partition import Partition
    from tidegate.model.plan import ScanPlan, Window
    from tidegate.pipeline.load import Loader
    from tidegate.storage import Storage

_ATTEMPTS = 5
"""How often an announce is written anew where something newer was recorded meanwhile."""


@dataclass(frozen=True)
class Announcer:
    """Seals windows: the one place where checkpoint and watermark move.

    Runs on: the process of one run's step. Called: at least once per run, also when there was no
    window.
    Failure: `sealed.json` may stand without its transaction; the next attempt announces what it
    says.
    """

    config: PipelineConfig
    ledger: Ledger
    storage: Storage
    loader: Loader

    def announce(self, planned: Sequence[PlannedWindow], now: datetime) -> Announced:
        """Seal the windows of a run.

        Without one, let an idle source move the watermark (design §7).

        Raises:
            WindowIncomplete: a sub-split has no message yet (Transient).
            RowsUnaccounted: the contributions have other rows than were kept.
            FenceLost: a newer attempt took a window over.
        """
        touched: dict[Partition, None] = {}
        summaries = []
        for item in planned:
            partitions, summary = self._seal(item, now)
            touched |= dict.fromkeys(partitions)
            summaries.append(summary)
        if not planned:
            self._idle(now)
        state = self._state()
        if state.checkpoint is not None:
            # Also without a window: a run that died here announced and did not come so far.
            self.loader.source.protect(self.config.name, state.checkpoint)
        return Announced(
            partitions=tuple(touched),
            windows=tuple(item.sequence for item in planned),
            watermark=state.watermark,
            summary=functools.reduce(RunSummary.merged, summaries, RunSummary()),
        )

    def _seal(self, item: PlannedWindow, now: datetime) -> tuple[tuple[Partition, ...], RunSummary]:
        scan = read_plan(self.storage, item.uri)
        announcement, at = self._announcement(item, scan, self._newest_written(item), now)
        # Only the sub-splits of this plan wanted them, and all of those are done. Before the ledger
        # knows, since a run that dies here comes by again and one that dies afterwards does not.
        self.storage.delete_tree(layout.exchange_root(item.uri))
        # From here on the ledger relies on the messages, on the plan and on what was just removed;
        # whoever wrote a message may have died before its name was on the disk.
        for folder in (layout.messages_root(item.uri), item.uri):
            if self.storage.exists(folder):
                self.storage.sync(folder)
        for _ in range(_ATTEMPTS - 1):
            with contextlib.suppress(NumberPassed):
                changed = self.ledger.windows.announce(announcement, at)
                break
            announcement, at = self._announcement(item, scan, None, now)
        else:
            changed = self.ledger.windows.announce(announcement, at)
        summary = self.ledger.windows.get(item.sequence).summary
        return changed, summary or announcement.summary

    def _announcement(
        self, item: PlannedWindow, scan: ScanPlan, written: SealedWindow | None, now: datetime
    ) -> tuple[Announcement, datetime]:
        """Say what the ledger is told, and when; it stands in a file before the ledger knows."""
        sealed = written or self._write(item, scan, now)
        _check_rows(sealed, item.uri)
        announcement = announcement_of(self.config, sealed, item.attempt, item.uri)
        return announcement, sealed.announced_at

    def _newest_written(self, item: PlannedWindow) -> SealedWindow | None:
        """Read what an attempt before this one wrote, unless it was overtaken since.

        An earlier plan that comes back into effect is written anew.
        """
        held = self.ledger.windows.get(item.sequence)
        found = [
            SealedWindow.from_text(self.storage.read_bytes(f"{item.uri}/{name}"))
            for name in self.storage.list_names(item.uri)
            if layout.is_sealed_file(name)
        ]
        newest = max(found, key=lambda sealed: sealed.number, default=None)
        is_announced = held.sealed and held.plan_digest == item.digest
        if newest is None or newest.number > held.number:
            return newest
        return newest if is_announced and not self._is_outdone(item, held.number) else None

    def _is_outdone(self, item: PlannedWindow, number: int) -> bool:
        """Say whether a file tells of a later announce that never was: it would be believed."""
        written = Records(self.loader.roots, self.storage).sealed(item.sequence)
        return any(file.sealed.number > number for file in written)

    def _write(self, item: PlannedWindow, scan: ScanPlan, now: datetime) -> SealedWindow:
        """Write the next `sealed.json`, under a number that the ledger gave to this attempt."""
        drafted = self._draft(item, scan, now)
        _check_rows(drafted, item.uri)
        # Drafting takes long: an attempt that lost its window meanwhile gets no number.
        number = self.ledger.windows.reserve(item.sequence, item.attempt, item.digest)
        drafted = replace(drafted, number=number)
        text = pretty(drafted.to_json())
        for path in (layout.sealed_file(item.uri), layout.sealed_file(item.uri, number)):
            if self.storage.write_once(path, text):
                return drafted
        msg = f"number {number} was given twice"
        raise AssertionError(msg)

    def _draft(self, item: PlannedWindow, scan: ScanPlan, now: datetime) -> SealedWindow:
        state = self._state()
        messages = list(self.loader.messages(item))
        check_balance(self.loader.source.name, (message.balance for message in messages))
        event_times = EventTimes()
        for message in messages:
            event_times = event_times.merged(message.event_times)
        said = PipelineConfig.from_resolved(scan.config).event_time
        if said is not None and said.watermark_from == "commit_time":
            event_times = commit_times(scan.window.range.end_inclusive.time, said, now)
        step = advance(
            said,
            state.watermark_step,
            event_times,
            rows_read=sum(message.rows_read for message in messages),
            now=now,
        )
        return SealedWindow(
            pipeline=self.config.name,
            ledger_id=state.ledger_id,
            window=scan.window,
            plan_digest=item.digest,
            contributions=(*contributions_of(messages, scan), *self._emptied(messages, scan)),
            watermark=step,
            summary=_summary(messages, scan),
            announced_at=now,
            first_start=state.first_start,
            source_identity=scan.pin.identity,
            fingerprint=scan.fingerprint,
        )

    def _emptied(self, messages: Sequence[CommitMessage], scan: ScanPlan) -> Iterator[Contribution]:
        """Give empty contributions where a window resets content and found no row (design §2)."""
        filled = {part.partition for message in messages for part in message.parts}
        for partition in self._reset(scan.window):
            if partition not in filled:
                yield Contribution(
                    window=scan.window.sequence,
                    partition=partition,
                    plan_digest=scan.digest,
                    messages=(),
                    rows=0,
                    bytes=0,
                    event_times=EventTimes(),
                    kind=scan.window.kind,
                )

    def _reset(self, window: Window) -> Iterator[Partition]:
        """Give the known partitions in which a window replaces what came before."""
        if not window.kind.replaces_everything:
            known = self.ledger.partitions
            yield from (item for item in window.partitions if known.find(item) is not None)
        # A restart at the head read nothing that could stand in for what was published.
        elif not window.is_empty:
            for state in self.ledger.partitions.all():
                before = self.ledger.windows.contributions(state.partition)
                if any(item.window < window.sequence for item in before):
                    yield state.partition

    def _idle(self, now: datetime) -> None:
        state = self._state()
        step = advance(
            self.config.event_time, state.watermark_step, EventTimes(), rows_read=0, now=now
        )
        if step.value is None or step.value == state.watermark:
            return
        if not self._is_unread(state, now):
            self.ledger.pipeline.advance_watermark(step)

    def _is_unread(self, state: PipelineState, now: datetime) -> bool:
        """Say whether the source has brought something that no window took in.

        A run without a window may have looked at an old interval only.
        """
        source = self.loader.source
        pin = source.pin(now, state.source_identity)
        if pin.head is None:
            return False
        return bool(source.following(pin, state.checkpoint).instants)

    def _state(self) -> PipelineState:
        state = self.ledger.pipeline.find()
        if state is None:
            msg = f"pipeline {self.config.name} was not adopted before its first step"
            raise AssertionError(msg)
        return state


def announcement_of(
    config: PipelineConfig, sealed: SealedWindow, attempt: int, uri: str
) -> Announcement:
    """Give what the ledger is told of a sealed window."""
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
    )


def _check_rows(sealed: SealedWindow, uri: str) -> None:
    """Check that every kept row goes to one partition, told by its path as the ledger tells it."""
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


def contributions_of(messages: Sequence[CommitMessage], scan: ScanPlan) -> tuple[Contribution, ...]:
    """Group what a window staged by partition, in path order; messages stay in plan order."""
    parts: dict[Partition, list[PartFile]] = defaultdict(list)
    speakers: dict[Partition, dict[str, None]] = defaultdict(dict)
    for message in messages:
        for part in message.parts:
            parts[part.partition].append(part)
            speakers[part.partition][message.sub_split] = None
    rules = _holding_rules(messages, scan)
    return tuple(
        Contribution(
            window=scan.window.sequence,
            partition=partition,
            plan_digest=scan.digest,
            messages=tuple(speakers[partition]),
            rows=sum(part.rows for part in parts[partition]),
            bytes=sum(part.length for part in parts[partition]),
            event_times=functools.reduce(
                EventTimes.merged, (part.event_times for part in parts[partition])
            ),
            held_rule=rules.get(partition),
            kind=scan.window.kind,
        )
        for partition in sorted(parts, key=lambda item: item.path)
    )


def _holding_rules(messages: Iterable[CommitMessage], scan: ScanPlan) -> dict[Partition, str]:
    names = [rule["name"] for rule in scan.config["rows"] if rule["on_failure"] == "hold"]
    return {partition: ", ".join(names) for message in messages for partition in message.held}


def _summary(messages: Sequence[CommitMessage], scan: ScanPlan) -> RunSummary:
    parts = [part for message in messages for part in message.parts]
    ignored = [message.ignored for message in messages if message.ignored is not None]
    return RunSummary(
        rows_read=sum(message.rows_read for message in messages),
        rows_kept=sum(message.rows_kept for message in messages),
        rows_quarantined=sum(part.rows for message in messages for part in message.quarantined),
        rows_future=sum(message.event_times.future for message in messages),
        rows_carried_over=sum(message.settled.carried_over for message in messages),
        rows_unpaired=sum(message.settled.unpaired for message in messages),
        deletes_ignored=functools.reduce(IgnoredDeletes.plus, ignored, IgnoredDeletes()).total,
        bytes_written=sum(part.length for part in parts),
        files_written=len(parts),
        sub_splits=len(messages),
        left_out=scan.record.listed.left_out if scan.record else {},
    )
