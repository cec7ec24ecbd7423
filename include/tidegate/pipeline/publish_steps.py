"""The steps of publishing a partition: propose, gate, commit, and all of them in one process."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidegate.errors import (
    ClaimHeld,
    FenceLost,
    LedgerBehind,
    LedgerMoved,
    NotApproved,
    NotCommittable,
    PartitionBusy,
    PartitionNotFound,
    PartitionStands,
    PublicationLapsed,
    SourceBacklog,
    TidegateError,
)
from tidegate.errors.commands import naming
from tidegate.model.counting import rows_pending
from tidegate.model.publication import Outcome, Verdict
from tidegate.model.run import Committed, Proposal, PublishOutcome
from tidegate.pipeline.parts import PipelineParts
from tidegate.pipeline.publish.side_by_side import side_by_side
from tidegate.pipeline.state.kept_ledger import keeping_ledger_open

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from tidegate.model.ledger_rows import KnownPartition, PartitionState
    from tidegate.model.partition import Partition
    from tidegate.model.publication import Approval, Override, Publication
    from tidegate.model.watermark import Evaluation
    from tidegate.target.compaction import CompactionRule

_ATTEMPTS_ON_NEW_CONTENT = 5

_AT_ONCE = 8
"""Partitions that one process publishes at once. Each may need two connections to the ledger."""

_TOO_EARLY = (
    ClaimHeld,
    FenceLost,
    LedgerBehind,
    LedgerMoved,
    NotApproved,
    NotCommittable,
    PartitionBusy,
    PartitionNotFound,
    PublicationLapsed,
)
"""Errors that say who else is at work, or what has to happen before; nothing is wrong with the
partition. Nothing is written into a ledger that is behind its files."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, repr=False)
class PublishSteps(PipelineParts):
    """The part of a pipeline that makes partitions visible to readers."""

    @keeping_ledger_open
    def propose(self, partition: Partition, owner: str, now: datetime) -> Proposal | None:
        """Work out the next revision; None if there is none, or if a person has to decide first.

        If the unfinished commit of a predecessor was finished, this is its revision; rows that
        arrived since are proposed next.

        Raises:
            NotCommittable: the partition's turn has not come.
        """
        self.own(now)
        with self._noting(partition, now), self._forgotten.naming():
            return self._committer.propose(partition, owner, now)

    @keeping_ledger_open
    def held(self, partition: Partition) -> Proposal | None:
        """Return what a held partition waits with; None if no person has to decide on it."""
        return self._committer.held(partition) if self.is_held(partition) else None

    @keeping_ledger_open
    def gate(
        self,
        partition: Partition,
        publication: str,
        owner: str,
        now: datetime,
        *,
        asks: bool = False,
    ) -> Verdict:
        """Check the partition as it would be published.

        Args:
            partition: the partition.
            publication: digest of the proposed revision.
            owner: the run.
            now: its clock.
            asks: whether the run waits for a person's answer if the partition is held.

        Raises:
            PipelineChanged: the pipeline file is not the one that was registered.
        """
        self._check_identity()
        with self._noting(partition, now), self._forgotten.naming():
            return self._committer.gate(partition, publication, owner, now, asks=asks)

    @keeping_ledger_open
    def commit(
        self,
        partition: Partition,
        publication: str,
        owner: str,
        now: datetime,
        *,
        by_command: bool = False,
    ) -> Committed:
        """Commit a checked publication."""
        self.own(now)
        with self._noting(partition, now), self._forgotten.naming():
            committed = self._committer.commit(
                partition, publication, owner, now, by_command=by_command
            )
        self._log_commit(committed, owner)
        return committed

    def _log_commit(self, made: Committed, owner: str) -> None:
        partition, windows = str(made.partition), list(made.windows)
        _log.info(
            "committed %s revision %d: %d rows",
            partition,
            made.revision,
            made.rows,
            extra=self._facts(run=owner, partition=partition, windows=windows),
        )

    def undone(self, partition: Partition) -> Publication:
        """Return what `undo` would do, without doing it.

        Raises:
            NothingToUndo: there is no content to go back to.
        """
        self._check_identity()
        self._check_touched(partition)
        return self._undoer.next_revision(partition)

    @keeping_ledger_open
    def undo(
        self, partition: Partition, revision: int, said: Approval, owner: str, now: datetime
    ) -> Committed:
        """Make a revision with the content from before the current one.

        What was published since is set aside until the partition is reopened.

        Args:
            partition: the partition.
            revision: the current one, as the person saw it.
            said: who undoes it, and why.
            owner: who claims the partition.
            now: clock of the command.

        Raises:
            NothingToUndo: there is no content to go back to.
            UndoImpossible: its files are gone.
            ErasureUnfinished: one of its files still has rows that were erased.
            PublicationLapsed: something has changed since.
        """
        self.own(now)
        self._check_touched(partition)
        undone = self._undoer.undo(partition, revision, said, owner, now)
        _log.info(
            "undid revision %d of %s: revision %d has %d rows",
            revision,
            partition,
            undone.revision,
            undone.rows,
            extra=self._facts(run=owner, partition=str(partition), by=said.by),
        )
        return undone

    @keeping_ledger_open
    def publish(
        self,
        partition: Partition,
        owner: str,
        now: datetime,
        override: Override | None = None,
        *,
        by_command: bool = False,
    ) -> PublishOutcome:
        """Do for one partition what its publish run does: evaluate, propose, gate, commit.

        Content that arrives between gate and commit is proposed and checked again (design §2,
        commit).

        Args:
            partition: the partition.
            owner: who claims it.
            now: clock of the command.
            override: a person's word that the partition is complete; it overrules the trigger,
                never the gate.
            by_command: a person named the partition, so that it is published even if it never is by
                time (design §8).
        """
        self.own(now)
        return self._published(partition, owner, now, override, by_command=by_command)

    @keeping_ledger_open
    def _published(
        self,
        partition: Partition,
        owner: str,
        now: datetime,
        override: Override | None,
        *,
        by_command: bool,
        looked: Evaluation | None = None,
    ) -> PublishOutcome:
        """Publish a partition of a target whose owner was checked.

        `looked` is what a look at all partitions found of it; what it is published by is read once
        it is claimed.
        """
        looked = looked or self._evaluator.evaluate(partition, now)
        if looked is None:
            # A person's declaration is stored with the revision that it leads to; here there is
            # none.
            return self._outcome(partition, None, state="unchanged" if override else None)
        with contextlib.suppress(NotCommittable):
            # Before anything is claimed, so that a look blocks nobody.
            self._evaluator.check(partition, looked, override, by_command=by_command)
            for _ in range(_ATTEMPTS_ON_NEW_CONTENT):
                with contextlib.suppress(PublicationLapsed):
                    return self._publish_once(
                        partition, owner, now, override, by_command=by_command
                    )
            raise PublicationLapsed(
                pipeline=self.config.name,
                partition=str(partition),
                change="new rows keep arriving",
            )
        return self._outcome(partition, None)

    def _publish_once(
        self,
        partition: Partition,
        owner: str,
        now: datetime,
        override: Override | None,
        *,
        by_command: bool,
    ) -> PublishOutcome:
        with self._noting(partition, now), self._forgotten.naming():
            passed = self._committer.publish(partition, owner, now, override, by_command=by_command)
        if passed.stands:
            # Rows that arrived since become another revision.
            after = self._published(partition, owner, now, override, by_command=by_command)
            needs_somebody = after.state in {"held", "failed"}
            return after if needs_somebody else replace(after, state="committed")
        verdict, committed = passed.verdict, passed.committed
        if verdict is None:
            return self._outcome(partition, None)
        if verdict.outcome is Outcome.FAIL:
            return self._outcome(partition, None, gate=Outcome.FAIL, state="failed")
        if committed is not None:
            self._log_commit(committed, owner)
        gate = verdict.outcome if verdict.checks else None
        if committed is None:
            return self._outcome(partition, None, gate=gate)
        found = self.ledger.partitions.get(partition)
        if found.pending != "none" or found.revision != committed.revision:
            # Rows that arrived since wait for the next revision.
            return self._outcome(partition, None, gate=gate, state="committed")
        return PublishOutcome(
            partition=partition,
            state="committed",
            revision=found.revision,
            rows=found.rows,
            why=found.why,
            gate=gate,
            approval=passed.approval,
        )

    @keeping_ledger_open
    def compact(
        self, partition: Partition, rule: CompactionRule, owner: str, now: datetime
    ) -> Committed | None:
        """Join small files of a published partition, whose rows stay as they are.

        Returns:
            None if there is nothing to join, or rows are waiting to be published first.
        """
        self.own(now)
        with self._forgotten.naming():
            return self._committer.compact(partition, rule, owner, now)

    @contextlib.contextmanager
    def _noting(self, partition: Partition, now: datetime) -> Iterator[None]:
        """Keep an error that a partition is not published by, unless it is only too early."""
        try:
            yield
        except _TOO_EARLY:
            raise
        except TidegateError as failure:
            # The failure is what the caller has to see, even if the ledger cannot keep it.
            with contextlib.suppress(TidegateError):
                self._evaluator.note_failure(partition, failure, now)
            raise

    def publish_all(
        self, owner: str, now: datetime, *, one_by_one: bool = False
    ) -> Iterator[PublishOutcome]:
        """Publish every pending partition, in order of partition time; see `publish_each`."""
        self.own(now)
        looks = self._reviewer.review(now).looks

        def work(partition: Partition) -> PublishOutcome:
            return self._tried(partition, owner, now, None, looked=looks.get(partition))

        yield from side_by_side(work, self.unpublished(), self._at_once(one_by_one=one_by_one))

    def publish_final(
        self, owner: str, now: datetime, override: Override, *, one_by_one: bool = False
    ) -> Iterator[PublishOutcome]:
        """Publish every pending partition as if the watermark were at its maximum (PC-M09, W09).

        The watermark is not stored. Counts, gate and approval apply as ever.

        Args:
            owner: who claims them.
            now: clock of the command.
            override: a person's word that the source is closed, kept with each revision for which
                the watermark alone was not enough.
            one_by_one: see `publish_each`.

        Raises:
            SourceBacklog: the source has changes that no window took in; nothing was published.
        """
        self.own(now)
        self._check_closed(now)
        self._reviewer.review(now, is_final=True)

        def work(partition: Partition) -> PublishOutcome:
            looked = self._evaluator.at_end(partition, now)
            if looked is not None and not looked.committable:
                usual = self._evaluator.evaluate(partition, now)
                if usual is not None and not usual.committable:
                    # What it waits for beside the watermark, which is passed.
                    return self._outcome(partition, looked)
            word = override if looked is not None and looked.committable else None
            return self._tried(partition, owner, now, word)

        yield from side_by_side(work, self.unpublished(), self._at_once(one_by_one=one_by_one))

    def _check_closed(self, now: datetime) -> None:
        state = self.ledger.pipeline.find()
        if state is None:
            return
        found = None
        held = self.ledger.windows.open()
        timeline = self.looking().source.timeline
        pin = timeline.pin(now, state.source_identity, after=state.checkpoint)
        if held is not None:
            found = f"window {held.window.sequence} open"
        elif pin.held_back is not None:
            found = "changes that wait for a pending write"
        elif pin.head is not None and timeline.following(pin, state.checkpoint).instants:
            found = f"changes after {state.checkpoint.id if state.checkpoint else 'none'}"
        if found is not None:
            raise SourceBacklog(pipeline=self.config.name, found=found)

    def publish_each(
        self,
        partitions: Iterable[Partition],
        owner: str,
        now: datetime,
        override: Override | None = None,
        *,
        by_command: bool = False,
        one_by_one: bool = False,
    ) -> Iterator[PublishOutcome]:
        """Publish some partitions that are known, several at once; see `publish`.

        They begin in the given order, and are returned in it. The failure of one partition does not
        stop the others (PC-T05), unless the target belongs to another pipeline, which is checked
        once. `one_by_one`, and with a policy that knows no threads, a partition begins when its
        outcome is asked for.
        """
        self.own(now)

        def work(partition: Partition) -> PublishOutcome:
            return self._tried(partition, owner, now, override, by_command=by_command)

        yield from side_by_side(
            work, tuple(dict.fromkeys(partitions)), self._at_once(one_by_one=one_by_one)
        )

    def _at_once(self, *, one_by_one: bool) -> int:
        policies, metastore = self.config.commit.policies, self.config.target.metastore
        together = all(policy.runs_side_by_side for policy in policies) and (
            metastore is None or metastore.runs_side_by_side
        )
        return 1 if one_by_one or not together else _AT_ONCE

    def _tried(
        self,
        partition: Partition,
        owner: str,
        now: datetime,
        override: Override | None,
        *,
        by_command: bool = False,
        looked: Evaluation | None = None,
    ) -> PublishOutcome:
        """Publish a partition; return the error, too, as what came of it."""
        try:
            return self._published(
                partition, owner, now, override, by_command=by_command, looked=looked
            )
        except TidegateError as failure:
            said = naming(str(failure), self.config.name, partition)
            failed = self._outcome(partition, None, state="failed", error=said)
            way_out = failure.way_out if isinstance(failure, PartitionStands) else None
            return replace(failed, way_out=way_out)

    def _outcome(
        self,
        partition: Partition,
        looked: Evaluation | None,
        *,
        gate: Outcome | None = None,
        state: str | None = None,
        error: str | None = None,
    ) -> PublishOutcome:
        known = self.ledger.known_partition(partition)
        if known is None:
            raise self.ledger.partitions.not_found(partition)
        found = known.state
        held = known.proposed if found.pending == "held" else None
        state = state or _outcome_state(found)
        made = known.newest if state == "committed" else None
        return PublishOutcome(
            partition=partition,
            state=state,
            revision=found.revision,
            rows=found.rows,
            why=looked or found.why,
            gate=gate,
            error=error,
            digest=held.publication.digest if held else None,
            approval=made.approval if made else held.approval if held else None,
            rows_pending=_rows_pending(known),
        )


def _rows_pending(known: KnownPartition) -> int | None:
    if known.state.pending == "none":
        return None
    return rows_pending(known.contributions, known.newest.contributions if known.newest else {})


def _outcome_state(found: PartitionState) -> str:
    if found.pending == "none":
        return "committed" if found.revision else "unchanged"
    return found.pending
