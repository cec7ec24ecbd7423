"""Repeat in an empty ledger what the files of a pipeline record, in the order of their numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from tidegate.commit.partition_time import PartitionClock
from tidegate.commit.policies import shown_table
from tidegate.config import OWNER_FILE, PipelineConfig
from tidegate.ledger.holder import Holder
from tidegate.ledger.identity import check_announced
from tidegate.model.aside import Aside
from tidegate.model.counting import plans_of
from tidegate.model.ledger_rows import PublicationEntry
from tidegate.model.message import Contribution, EventTimes
from tidegate.model.publication import GateRecord, Publication, PublicationState
from tidegate.pipeline.load.announce import announcement_of
from tidegate.pipeline.publish.commit_plans import revision_of
from tidegate.pipeline.publish.late import LateFiles
from tidegate.pipeline.state.places import Roots, is_same_place
from tidegate.pipeline.state.plan_files import read_plan
from tidegate.pipeline.upkeep.announces import turn_of, turn_of_plan
from tidegate.pipeline.upkeep.commit_chain import chain_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tidegate.ledger import Ledger
    from tidegate.model.abandoned import AbandonedPlan
    from tidegate.model.ledger_rows import Claim, PipelineState
    from tidegate.model.partition import Partition
    from tidegate.model.publication import DecisionRecord
    from tidegate.model.sealed import SealedWindow
    from tidegate.pipeline.publish.content import Contents
    from tidegate.pipeline.state.records import CommitFile, SealedFile
    from tidegate.pipeline.upkeep.announces import Turn
    from tidegate.pipeline.upkeep.past import Past
    from tidegate.pipeline.upkeep.taken_back import TakenBack
    from tidegate.storage import Storage

_OWNER = "fsck"
_CLAIM = timedelta(hours=1)
_UNKNOWN = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Restored:
    """The result of a restoration."""

    windows: int
    revisions: int
    unfinished: tuple[str, ...]
    """Partitions whose commit was under way; the next publish finishes it."""
    undecided: tuple[str, ...] = ()
    """Partitions with a decision that the ledger in use has and no file has."""
    taken_back: tuple[TakenBack, ...] = ()
    """Erasures and undos that do not stand any more: the target is older than they are."""


@dataclass(frozen=True)
class _Step:
    """One recorded event."""

    turn: Turn
    act: Callable[[], None]


@dataclass
class Repetition:
    """Repeats in an empty ledger what the files record."""

    config: PipelineConfig
    roots: Roots
    ledger: Ledger
    storage: Storage
    contents: Contents

    def restore(self, ledger_id: str, past: Past) -> Restored:
        """Write all that the files record, in the order of their numbers.

        Raises:
            PipelineChanged: the newest announce was made by a different pipeline file.
        """
        sealed, plans = past.announces.files, past.plans
        self._check_identity(sealed)
        table = shown_table(self.config.target)
        chains = [
            chain_of(mine, self.roots, self.storage, table)
            for mine in _by_partition(plans).values()
        ]
        began = min((item.sealed.announced_at for item in sealed), default=_UNKNOWN)
        target = self.storage.real_path(self.roots.target)
        self.ledger.pipeline.register(self.config.identity(), target, began, ledger_id)
        steps = [*self._announcing_first(past), *map(self._announcing, sealed)]
        steps += [self._recording(item) for chain in chains for item in chain.recorded]
        steps += [self._preparing(chain.unfinished) for chain in chains if chain.unfinished]
        steps += [self._setting_aside(item) for item in past.decisions if _is_of_rows(item)]
        for step in sorted(steps, key=lambda item: item.turn):
            step.act()
        self._use_up(past.abandoned)
        self._advance_watermark(plans)
        verdicts = self._newest(past.verdicts)
        self._settle_unchanged(verdicts)
        for record in verdicts.values():
            self._restore_proposal(record, past.decisions)
        return Restored(
            windows=len({item.sealed.window.sequence for item in sealed}),
            revisions=sum(len(chain.recorded) for chain in chains),
            unfinished=tuple(
                str(chain.unfinished.plan.publication.partition)
                for chain in chains
                if chain.unfinished
            ),
        )

    def keep(self, state: PipelineState) -> None:
        """Keep what a ledger in use has and no file has.

        This is the start of the first window before one is announced, and the watermark that an
        idle source reached.
        """
        if state.started:
            self.ledger.pipeline.start_at(state.first_start, str(state.source_identity))
        if state.watermark_step is not None:
            found = self.ledger.pipeline.get().watermark_step
            self.ledger.pipeline.advance_watermark(state.watermark_step, found)

    def _use_up(self, abandoned: Sequence[AbandonedPlan]) -> None:
        """Take and give back the last window that was abandoned, if no later one was announced."""
        newest = max(abandoned, key=lambda item: item.window.sequence, default=None)
        state = self.ledger.pipeline.get()
        if newest is not None and newest.window.sequence >= state.next_sequence:
            holder = Holder(_OWNER, newest.abandoned_at, _CLAIM)
            taken = self.ledger.windows.take(newest.window, state, holder)
            self.ledger.windows.give_back(taken.window.sequence, taken.attempt)

    def _advance_watermark(self, plans: Sequence[CommitFile]) -> None:
        """Advance the watermark to that of the commits; an idle source leaves no announce."""
        step = self.ledger.pipeline.get().watermark_step
        if step is None:
            return
        seen = [
            item.plan.watermark
            for item in plans
            if item.plan.watermark is not None and item.plan.watermark_basis == step.basis
        ]
        if seen:
            newest = max(seen)
            if step.value is None or newest > step.value:
                self.ledger.pipeline.advance_watermark(
                    replace(
                        step,
                        previous=step.value,
                        largest_event_time=None,
                        future_rows=0,
                        idle=True,
                        value=newest,
                    ),
                    step,
                )

    def _check_identity(self, sealed: Sequence[SealedFile]) -> None:
        """Compare the pipeline file with the one that the newest announce was planned by.

        After the first announce the identity is fixed; losing the ledger must not register a
        changed file.
        """
        newest = max(sealed, key=turn_of, default=None)
        if newest is not None:
            planned = PipelineConfig.from_resolved(read_plan(self.storage, newest.plan_uri).config)
            check_announced(
                self.config.name,
                planned.identity(),
                self.config.identity(),
                {part.partition for item in sealed for part in item.sealed.contributions},
                self._leads_here,
            )

    def _leads_here(self, planned: str, found: str) -> bool:
        """Return whether a target is where it was planned for, or was moved from there.

        That it is the pipeline's own was checked before.
        """
        if is_same_place(self.storage, planned, found):
            return True
        return "${" not in planned and not self.storage.exists(f"{planned}/{OWNER_FILE}")

    def _announcing_first(self, past: Past) -> Iterator[_Step]:
        """Announce windows in their order if the file of the first announce was lost.

        Yielded before all other steps, so that they are the first ones of a turn.
        """
        first = past.announces.first()
        for sequence, turn in past.announces.turns(past.plans).items():
            item = first[sequence]
            if turn < turn_of(item):
                brought = (*item.sealed.contributions, *_emptied(item.sealed, past.plans))
                early = replace(item.sealed, number=turn[0], contributions=brought)
                yield replace(self._announcing(replace(item, sealed=early)), turn=turn)

    def _announcing(self, item: SealedFile) -> _Step:
        return _Step(turn_of(item), lambda: self._announce(item))

    def _recording(self, item: CommitFile) -> _Step:
        return _Step(turn_of_plan(item), lambda: self._record(item))

    def _preparing(self, item: CommitFile) -> _Step:
        return _Step(turn_of_plan(item), lambda: self._prepare(item))

    def _setting_aside(self, item: DecisionRecord) -> _Step:
        turn = (item.number, item.why.evaluated_at)
        return _Step(turn, lambda: self.ledger.publications.restore_aside(item))

    def _announce(self, item: SealedFile) -> None:
        sealed, now = item.sealed, item.sealed.announced_at
        holder = Holder(_OWNER, now, _CLAIM)
        self.ledger.pipeline.start_at(sealed.first_start, sealed.source_identity)
        if self.ledger.windows.find(sealed.window.sequence) is not None:
            taken = self.ledger.windows.resume(sealed.window.sequence, holder, None)
        else:
            taken = self.ledger.windows.take(sealed.window, self.ledger.pipeline.get(), holder)
        self.ledger.plans.record(read_plan(self.storage, item.plan_uri), item.plan_uri)
        self.ledger.windows.announce(
            announcement_of(self.config, sealed, taken.attempt, item.plan_uri), now
        )

    def _prepare(self, item: CommitFile) -> None:
        plan = item.plan
        self._know_empty(plan.publication, plan.prepared_at)
        self.ledger.publications.restore(
            PublicationEntry(
                publication=plan.publication,
                rows=plan.publication.rows,
                verdict=plan.verdict,
                approval=plan.approval,
                state=PublicationState.PREPARED,
                override=plan.override,
                commit_plan=item.path,
            ),
            plan.prepared_at,
        )

    def _record(self, item: CommitFile) -> None:
        self._prepare(item)
        plan = item.plan
        claim = self._claim(plan.publication.partition, plan.prepared_at)
        entry = revision_of(plan, item.path, plan.owner, plan.prepared_at)
        self.ledger.publications.record(entry, claim)

    def _know_empty(self, publication: Publication, at: datetime) -> None:
        """Make a partition known that was published without rows, and that no window touched."""
        if not publication.contributions:
            times = PartitionClock.of(self.config).bounds(publication.partition)
            self.ledger.expected.restore(publication.partition, times, at)

    def _settle_unchanged(self, verdicts: Mapping[str, GateRecord]) -> None:
        """Clear pending partitions that a replay did not change, which left no file.

        Args:
            verdicts: path → the verdict on the next revision; one that is held stays pending until
                it is held, although nothing may be left of it once its late rows are rejected.
        """
        contents = replace(self.contents, ledger=self.ledger)
        for state in self.ledger.partitions.all():
            begun = self.ledger.publications.unrecorded(state.partition)
            if state.pending != "pending" or not state.revision or begun is not None:
                continue
            record = verdicts.get(state.partition.path)
            if record is not None and record.held and self._is_all(record.publication):
                continue
            seen = self.ledger.contributions.to(state.partition)
            drafted = contents.waiting(state.partition, state, seen)
            standing = contents.standing(state.partition)
            stood = standing.contributions if standing else {}
            late = LateFiles(self.roots, self.storage, contents)
            if drafted.is_empty and late.are_filed(state.partition, seen, stood):
                claim = self._claim(state.partition, _UNKNOWN)
                self.ledger.partitions.note_standing(state.partition, claim, seen)

    def _newest(self, verdicts: Sequence[GateRecord]) -> Mapping[str, GateRecord]:
        """Return the verdicts on partitions that wait for the gate or a person, by path."""
        newest: dict[str, GateRecord] = {}
        for record in sorted(verdicts, key=lambda item: (item.number, item.verdict.checked_at)):
            self._know_empty(record.publication, record.verdict.checked_at)
            if self._is_next(record.publication):
                newest[record.publication.partition.path] = record
        return newest

    def _restore_proposal(self, record: GateRecord, decisions: Sequence[DecisionRecord]) -> None:
        publication, held = record.publication, record.held
        entry = PublicationEntry(
            publication=publication,
            rows=publication.rows,
            verdict=record.verdict,
            approval=None,
            state=PublicationState.PROPOSED,
            override=record.override,
        )
        for decision in sorted(decisions, key=lambda item: (item.number, item.why.evaluated_at)):
            about = (decision.partition, decision.publication)
            if about != (publication.partition, publication.digest):
                continue
            if decision.number < record.number:
                continue
            if decision.approval is None:
                entry, held = replace(entry, verdict=None, approval=None), None
            else:
                entry = replace(entry, approval=decision.approval)
                held = decision.why if held is not None else None
        self.ledger.publications.restore(entry, record.verdict.checked_at)
        if held is not None and self._is_all(publication):
            self.ledger.partitions.restore_hold(publication.partition, held)

    def _is_next(self, publication: Publication) -> bool:
        """Return whether a verdict may be about the partition's next revision."""
        state = self.ledger.partitions.find(publication.partition)
        return (
            state is not None
            and state.revision == publication.base_revision
            and self.ledger.publications.unrecorded(publication.partition) is None
        )

    def _is_all(self, publication: Publication) -> bool:
        """Return whether no contribution was added since: new rows end a hold."""
        known = self.ledger.contributions.to(publication.partition)
        shown = publication.contributions
        # A rejection of late rows sets them aside, and leaves the rest held as it was shown.
        rejected = {
            str(item.window): item.plan_digest
            for item in known
            if item.aside is Aside.LATE_PROPOSED and str(item.window) in shown
        }
        return dict(shown) == {**plans_of(known), **rejected}

    def _claim(self, target: Partition, now: datetime) -> Claim:
        return self.ledger.partitions.claim(target, Holder(_OWNER, now, _CLAIM))


def _is_of_rows(decision: DecisionRecord) -> bool:
    """Return whether a decision sets rows aside, or lets them count again."""
    return bool(decision.set_aside or decision.released)


def _emptied(sealed: SealedWindow, plans: Iterable[CommitFile]) -> Iterator[Contribution]:
    """Return empty contributions to partitions that only an earlier plan brought rows for.

    The announce of that plan is lost; commits name the partitions.
    """
    publications = [item.plan.publication for item in plans]
    counting = {
        item.partition.path: item.partition
        for item in publications
        if str(sealed.window.sequence) in item.contributions
    }
    for path in sorted(counting.keys() - {item.partition.path for item in sealed.contributions}):
        yield Contribution(
            window=sealed.window.sequence,
            partition=counting[path],
            plan_digest=sealed.plan_digest,
            messages=(),
            rows=0,
            bytes=0,
            event_times=EventTimes(),
            kind=sealed.window.kind,
        )


def _by_partition(plans: Iterable[CommitFile]) -> dict[str, list[CommitFile]]:
    grouped: dict[str, list[CommitFile]] = {}
    for item in plans:
        grouped.setdefault(item.plan.publication.partition.path, []).append(item)
    return grouped
