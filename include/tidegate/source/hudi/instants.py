"""The instants of a Hudi table: the done writes of its timeline, in the order of completion."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

from tidegate.errors import (
    HollowInstant,
    HudiHistoryLost,
    HudiInstantGone,
    HudiTableDowngraded,
    HudiTimelineGone,
    InstantNotFound,
)
from tidegate.model.instant import aware_time
from tidegate.model.plan import Pin, WindowKind
from tidegate.model.report import CheckpointState
from tidegate.source.hudi.foreseen import refusal_ahead
from tidegate.source.hudi.pinning import HudiPins
from tidegate.source.hudi.slices.details import REPLACING
from tidegate.source.hudi.slices.listing import partitions
from tidegate.source.hudi.slices.split_buckets import written_once
from tidegate.source.hudi.timeline.hollow import hollow_write, spelled
from tidegate.source.hudi.timeline.kept import kept_before
from tidegate.source.hudi.timeline.times import instant_of, order_of
from tidegate.source.hudi.timeline.writes import (
    active_writes,
    archived_writes,
    blocking,
    ends_following,
    newest_write,
    writes_following,
)
from tidegate.source.timeline import Following, InstantReport

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tidegate.model.instant import DataInterval, Instant
    from tidegate.source.hudi.access import TableAccess
    from tidegate.source.hudi.foreseen import Slices
    from tidegate.source.hudi.timeline.loaded import LoadedTimeline, Order


class HudiTimeline:
    """The `Timeline` of one table; only `pin` lists the timeline anew (HUDI-T14)."""

    def __init__(self, access: TableAccess, extra_columns: Sequence[str], slices: Slices) -> None:
        """Prepare.

        Args:
            access: to the table.
            extra_columns: columns that a filter needs besides `read.columns`, read at the end.
            slices: lists the slices of a window.
        """
        self._access = access
        self._pins = HudiPins(access, extra_columns)
        self._slices = slices

    def pin(
        self,
        now: datetime,
        expected_identity: str | None = None,
        until: datetime | None = None,
        after: Instant | None = None,
    ) -> Pin:
        """List the timeline and pin its newest write; a pending one before it may end it earlier.

        Raises:
            HollowInstant: a write is pending on layout 1, and the pipeline says `fail`.
            HudiCommitTimesMissing: rows do not have the time of their commit, and changes are read.
            HudiTimelineGone: the table has partitions, and no instant (Transient).
        """
        del expected_identity, until, after
        timeline = self._access.look()
        if not timeline.active.actions and partitions(self._access.files):
            folder = timeline.table.timeline_folder
            raise HudiTimelineGone(path=self._access.files.path(folder))
        hollow = hollow_write(timeline, now, self._access.zone(timeline.table))
        if hollow is None:
            return self._pins.of(timeline, newest_write(timeline))
        if self._access.config.on_hollow_instant == "fail":
            raise HollowInstant(
                source=self._access.name, instant=hollow.requested, age=spelled(hollow.age)
            )
        done = [it for it in active_writes(timeline) if it[1] < hollow.requested]
        # A state has all that is done; only a checkpoint must not pass over what is not.
        is_state = self._access.config.read.mode == "snapshot"
        head = newest_write(timeline) if is_state else done[-1] if done else None
        return replace(self._pins.of(timeline, head), held_back=hollow.held_back)

    def at(self, pin: Pin, instant: Instant) -> Pin:
        """Pin an earlier write."""
        timeline = self._access.timeline(pin)
        return self._pins.of(timeline, timeline.order(instant))

    def whole_at(self, pin: Pin, checkpoint: Instant) -> Pin:
        """Pin the checkpoint; whether its files are still there is seen when they are listed."""
        return self.at(pin, checkpoint)

    def named(self, pin: Pin, text: str) -> Instant | None:
        """Find a write by its id, or by its requested time, in the archive as well."""
        timeline = self._access.timeline(pin)
        requested = text.partition("_")[0]
        found = timeline.active.writes.get(requested)
        order = found.order if found is not None else self._archived_order(timeline, requested)
        if order is None:
            return None
        instant = self._instant(timeline, order)
        return instant if text in {requested, instant.id} else None

    def as_of(self, pin: Pin, moment: datetime) -> Instant | None:
        """Return the last write that was done at or before a time."""
        found = [it for it in self._all(pin) if it.time <= moment]
        return found[-1] if found else None

    def first_checkpoint(self, pin: Pin) -> Instant | None:
        """Return the instant that `source.start` begins after; None: the state as of the end.

        Raises:
            InstantNotFound: the start is neither a write of the timeline nor a time with a zone.
        """
        start = self._access.config.start
        if start.kind in {"full", "earliest"} or pin.head is None:
            return None
        if start.kind == "latest":
            return pin.head
        if start.kind == "latest_inclusive":
            return self._before(pin, pin.head)
        text = str(start.value)
        named = self.named(pin, text)
        if named is not None:
            return self._before(pin, named) if start.kind == "from" else named
        moment = aware_time(text)
        if moment is None:
            raise InstantNotFound(source=self._access.name, instant=text)
        inclusive = start.kind == "from"
        earlier = [
            it for it in self._all(pin) if it.time < moment or (it.time == moment and not inclusive)
        ]
        return earlier[-1] if earlier else None

    def instants(self, pin: Pin, after: Instant | None) -> tuple[Instant, ...]:
        """List the writes after a checkpoint up to the pinned head.

        Raises:
            HudiInstantGone: the checkpoint was rolled back, or restored away (HUDI-T6).
            HudiTableDowngraded: it has a time of completion, and the timeline has none.
            HudiHistoryLost: it was archived, and the archive does not have it any more.
        """
        if pin.head is None:
            return self._nothing(pin, after)
        timeline = self._access.timeline(pin)
        end = timeline.order(pin.head)
        found = writes_following(timeline, after)
        return tuple(self._instant(timeline, order) for order in found if order <= end)

    def following(self, pin: Pin, after: Instant | None) -> Following:
        """Return what the next window may take: in mode `snapshot`, the whole table again.

        So it is with `on_cleaned: snapshot` if nothing tells what followed the checkpoint
        (HUDI-W12).

        Raises:
            HudiInstantGone, HudiHistoryLost: see `instants`.
        """
        self._access.reloads = None
        found, self._access.reloads = self._following(pin, after)
        return found

    def restarting(self, pin: Pin) -> Following:
        """Return what a pipeline takes that begins again at `source.start`."""
        if pin.head is None:
            return Following((), None)
        start = self.first_checkpoint(pin)
        if start is None:
            return Following((pin.head,), None, WindowKind.RELOAD)
        # `latest` has nothing to read; the window from head to head only moves the checkpoint.
        return Following(self.instants(pin, start) or (pin.head,), start, WindowKind.RESTART)

    def checkpoint_state(self, pin: Pin, checkpoint: Instant) -> CheckpointState:
        """Return how many writes follow a checkpoint, or why that cannot be told."""
        head = pin.head.id if pin.head else None
        try:
            found, reloads = self._following(pin, checkpoint)
        except (HudiInstantGone, HudiTableDowngraded, HudiHistoryLost) as refused:
            return CheckpointState("unknown", str(refused), checkpoint.id, head)
        if not found.joins_on:
            return CheckpointState("expired", reloads or "", checkpoint.id, head)
        state, said = "in lineage", "the next load reads the whole table"
        if not found.instants:
            state, said = "caught up", "nothing to read"
        elif found.kind is not WindowKind.RELOAD:
            count = len(self.instants(pin, checkpoint))
            said = f"the next load reads {'1 commit' if count == 1 else f'{count} commits'}"
        timeline = self._access.timeline(pin)
        kept = None
        if self._access.config.read.mode != "snapshot":
            kept = kept_before(timeline, timeline.order(checkpoint))
        ahead = refusal_ahead(self._access, self._slices, pin, checkpoint, found.instants, kept)
        if ahead is not None:
            state, said = "expired", f"the next load will stop: {ahead}"
        return CheckpointState(
            state,
            "; ".join(filter(None, (said, kept.said if kept else None, pin.held_back))),
            checkpoint.id,
            head,
            kept=kept.writes if kept else None,
        )

    def retained(self, pin: Pin) -> tuple[Instant, ...]:
        """List the writes of the active timeline up to the pinned head."""
        if pin.head is None:
            return ()
        timeline = self._access.timeline(pin)
        end = timeline.order(pin.head)
        return tuple(
            self._instant(timeline, order) for order in active_writes(timeline) if order <= end
        )

    def history(
        self,
        pin: Pin,
        before: Instant,
        interval: DataInterval,  # noqa: ARG002 (the timeline is read as a whole)
    ) -> tuple[Instant, ...]:
        """List the writes of the active timeline up to and including an instant.

        None where windows replace partitions: those of several intervals would add up.
        """
        if self._access.config.read.mode == REPLACING:
            return ()
        last = self._access.timeline(pin).order(before)
        return tuple(it for it in self.retained(pin) if order_of(it) <= last)

    def describe(self, pin: Pin, instants: Sequence[Instant]) -> list[InstantReport]:
        """Return what writes did, from their commit metadata."""
        timeline = self._access.timeline(pin)
        reports = []
        for instant in instants:
            _, requested = order_of(instant)
            metadata = timeline.metadata_of(requested)
            written = written_once(timeline, requested).values()
            once = [stat for found in written for stat in found.files]
            replaced = sum(len(groups) for groups in metadata.replaced.values())
            reports.append(
                InstantReport(
                    instant=instant,
                    operation=metadata.operation.lower(),
                    files_added=len(metadata.files),
                    files_removed=replaced or None,
                    rows_added=sum(stat.changed for stat in once),
                    # How many rows the replaced groups had is not written down.
                    rows_removed=None if replaced else sum(stat.deletes for stat in once),
                )
            )
        return reports

    def _following(self, pin: Pin, after: Instant | None) -> tuple[Following, str | None]:
        """Return what follows, and why that is the whole table if a policy decided so."""
        config = self._access.config
        if config.read.mode == "snapshot":
            ends = _never_between(self._states(pin, after))
            return Following(ends, None, WindowKind.RELOAD), None
        # The first window has nothing to replace.
        replaces = config.read.mode == REPLACING and after is not None
        kind = WindowKind.REPLACE if replaces else WindowKind.LOAD
        try:
            return Following(_never_between(self._ends(pin, after)), after, kind), None
        except HudiHistoryLost as lost:
            if config.on_cleaned == "fail" or pin.head is None:
                raise
            reason = (
                f"the commits after {lost.instant} are not known any more, because the archive of "
                f"the timeline goes back to {lost.oldest} only: `source.on_cleaned: snapshot` "
                "reads the whole table again, in place of all that was read before"
            )
            return Following((pin.head,), None, WindowKind.RELOAD, joins_on=False), reason

    def _nothing(self, pin: Pin, after: Instant | None) -> tuple[Instant, ...]:
        """Return the writes up to a head that is not there.

        Raises:
            HudiInstantGone, HudiTableDowngraded, HudiHistoryLost: see `instants`; so it is where
                nothing is done at all.
        """
        if after is not None:
            writes_following(self._access.timeline(pin), after)
        return ()

    def _states(self, pin: Pin, after: Instant | None) -> tuple[Instant, ...]:
        """Return the writes up to the head whose state a window may read after a checkpoint.

        After one that was taken back, that is the newest. None passes over a pending write of
        layout 1 (HUDI-W5): done later, it would change a state that the checkpoint says is read.
        """
        if pin.head is None:
            return self._nothing(pin, after)
        timeline = self._access.timeline(pin)
        end, pending = timeline.order(pin.head), blocking(timeline)
        ends = [
            order
            for order in active_writes(timeline)
            if order <= end and (pending is None or order[1] < pending.requested)
        ]
        if after is not None:
            done, requested = order_of(after)
            read = (requested if timeline.table.layout == 1 else done, requested)
            is_there = requested in timeline.active.writes
            ends = [it for it in ends if it > read] or ([] if is_there else ends[-1:])
        return tuple(self._instant(timeline, order) for order in ends)

    def _ends(self, pin: Pin, after: Instant | None) -> tuple[Instant, ...]:
        if pin.head is None:
            return self._nothing(pin, after)
        timeline = self._access.timeline(pin)
        end = timeline.order(pin.head)
        found = ends_following(timeline, after)
        return tuple(self._instant(timeline, order) for order in found if order <= end)

    def _all(self, pin: Pin) -> tuple[Instant, ...]:
        """List all writes that are known up to the head, archived ones included."""
        if pin.head is None:
            return ()
        timeline = self._access.timeline(pin)
        end = timeline.order(pin.head)
        found = sorted({*archived_writes(timeline), *active_writes(timeline)})
        return tuple(self._instant(timeline, order) for order in found if order <= end)

    def _archived_order(self, timeline: LoadedTimeline, requested: str) -> Order | None:
        """Return the place of an archived instant; the archive is read only if it can be there."""
        first = timeline.active.first
        may_be_there = requested.isdecimal() and (first is None or requested < first)
        found = timeline.archived.get(requested) if may_be_there else None
        return found.order if found is not None else None

    def _before(self, pin: Pin, instant: Instant) -> Instant | None:
        end = self._access.timeline(pin).order(instant)
        earlier = [it for it in self._all(pin) if order_of(it) < end]
        return earlier[-1] if earlier else None

    def _instant(self, timeline: LoadedTimeline, order: Order) -> Instant:
        zone = self._access.zone(timeline.table)
        return instant_of(order, timeline.table.layout, zone)


def _never_between(instants: tuple[Instant, ...]) -> tuple[Instant, ...]:
    """Return the instants at which a window may end: never between equal times (HUDI-W4)."""
    return tuple(
        instant
        for instant, later in itertools.zip_longest(instants, instants[1:])
        if later is None or order_of(later)[0] != order_of(instant)[0]
    )
