"""Turn contributions into the current revision.

Propose, gate, commit, one partition at a time. Each step checks its requirements itself.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidegate.commit.publisher import is_marked
from tidegate.errors import (
    LedgerBehind,
    NotApproved,
    NotCommittable,
    NumberPassed,
    PublicationLapsed,
    UnitLost,
)
from tidegate.model.publication import (
    GateRecord,
    Outcome,
    Publication,
    PublicationState,
    Verdict,
)
from tidegate.model.run import Committed, Proposal
from tidegate.pipeline.publish.commit_plans import CommitPlans, writes_marker
from tidegate.pipeline.publish.judged import failed_why
from tidegate.pipeline.state.again import again_if
from tidegate.pipeline.state.work import check_not_ending

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tidegate.config import PipelineConfig
    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import Claim, PartitionState, PublicationEntry, RevisionEntry
    from tidegate.model.message import Contribution
    from tidegate.model.partition import Partition
    from tidegate.model.publication import Override
    from tidegate.pipeline.publish.compacting import Compactor
    from tidegate.pipeline.publish.content import Contents
    from tidegate.pipeline.publish.evaluating import Evaluator
    from tidegate.pipeline.publish.expecting import Reviewer
    from tidegate.pipeline.publish.finishing import Finisher
    from tidegate.pipeline.publish.gating import Gatekeeper
    from tidegate.pipeline.publish.late import LateRows
    from tidegate.pipeline.state.behind import Watch
    from tidegate.pipeline.state.places import Roots
    from tidegate.storage import Storage
    from tidegate.target.compaction import CompactionRule


@dataclass(frozen=True)
class Committer:
    """The second half of a pipeline, for one partition at a time.

    Runs on: one process per partition. Called: at least once per revision.
    Failure: a publication that was prepared is finished by the next call, with the same written
    list; one that was not is proposed again.
    """

    config: PipelineConfig
    roots: Roots
    ledger: Ledger
    storage: Storage
    contents: Contents
    gatekeeper: Gatekeeper
    evaluator: Evaluator
    finisher: Finisher
    watch: Watch
    compactor: Compactor
    """Works out what the next revision is made of."""
    late: LateRows
    reviewer: Reviewer

    def propose(
        self,
        partition: Partition,
        owner: str,
        now: datetime,
        override: Override | None = None,
        *,
        by_command: bool = False,
    ) -> Proposal | None:
        """Finish a commit that a predecessor began; otherwise compute and store the next revision.

        A revision that a person approved goes first, as it was shown; rows that arrived since wait
        for the revision after it (design §4).

        Returns:
            None if the partition's content would not change, or a person has to decide first. If a
            predecessor's revision was finished, that revision, whatever follows it: the caller that
            commits it notifies its consumers, and nobody else will.

        Raises:
            ClaimHeld: another run works on the partition (Transient).
            NotCommittable: it is not due, and nobody overrides that.
            LedgerBehind: the files are ahead of the ledger; nothing was changed.
        """
        self.watch.check_newest_window()
        self.watch.check_partition(partition)
        claim, finished = self.finisher.claim_with_nothing_begun(partition, owner, now)
        looked = None if finished else self.evaluator.evaluate(partition, now)
        if looked is None:
            self.ledger.partitions.release(partition, claim)
            return replace(_in_numbers(finished), stands=True) if finished else None
        try:
            override = self.evaluator.check(partition, looked, override, by_command=by_command)
        except NotCommittable:
            self.ledger.partitions.release(partition, claim)
            raise
        approved = self.ledger.publications.approved(partition)
        if approved is not None:
            self._check_units(approved.publication, claim, now)
            return self._proposal(approved)
        before = self.ledger.publications.proposed(partition)
        following = self._next_revision(partition, claim, now)
        if following is None:
            return None
        stored = self.ledger.publications.propose(following, claim, now, override)
        return self._proposal(stored, before)

    def _check_units(self, approved: Publication, claim: Claim, now: datetime) -> None:
        """Make files of an approved revision again that were assembled for it and are gone.

        Raises:
            UnitLost: they cannot be, because more has come since.
        """
        partition = approved.partition
        if not self.contents.lacks_unit(approved):
            return
        following = self._next_revision(partition, claim, now)
        if following is None or following.digest != approved.digest:
            self.ledger.partitions.release(partition, claim)
            raise UnitLost(pipeline=self.config.name, partition=str(partition))

    def held(self, partition: Partition) -> Proposal | None:
        """Return what a held partition waits with for a person's decision."""
        stored = self.ledger.publications.proposed(partition)
        return self._proposal(stored) if stored is not None else None

    def gate(
        self,
        partition: Partition,
        publication: str,
        owner: str,
        now: datetime,
        *,
        asks: bool = False,
    ) -> Verdict:
        """Check a proposed revision, and store the verdict; a hold ends the claim.

        A verdict that allows the commit, or that a person overruled, is not computed again, nor is
        that of the current revision.

        Args:
            partition: the partition.
            publication: digest of the proposed revision.
            owner: the run.
            now: its clock.
            asks: whether the run waits for a person's answer if the partition is held; the ledger
                keeps its name, because others should not replace what it shows.

        Raises:
            PublicationLapsed: the proposal was replaced in the meantime.
            StagedFileMissing, FileLengthWrong, FileContentWrong: a file was lost or damaged.
            LedgerBehind: the files are ahead of the ledger; nothing was changed.
        """
        done = self.ledger.publications.find(partition, publication)
        if done is not None and done.state is PublicationState.RECORDED and done.verdict:
            return done.verdict
        entry = self.contents.proposed(partition, publication)
        if entry.verdict is not None and self._is_passed(entry):
            return entry.verdict
        # Before a number is reserved: afterwards the ledger would seem to know an older record.
        self.watch.check_records(partition)
        claim = self.finisher.claim(partition, owner, now)
        with self.finisher.renewing(partition, claim):
            # A lost file is reported with its window before an engine fails on it.
            self.finisher.examine(entry.publication, ())
            verdict, report = self.gatekeeper.judge(partition, entry, now)
            # Before the verdict is known to others, who then look at what is held.
            if verdict.outcome is Outcome.HOLD:
                self.finisher.hold(entry.publication, owner)
            elif verdict.outcome is Outcome.FAIL:
                self.finisher.drop_held(partition)
        why = failed_why(verdict, now, self.ledger.partitions.get(partition).why)
        held = why if verdict.outcome is Outcome.HOLD else None
        if held is not None and asks:
            held = replace(held, waiting=owner)
        number = self.ledger.publications.reserve(partition, claim)
        self.gatekeeper.keep(
            GateRecord(entry.publication, verdict, held, report, entry.override, number)
        )
        try:
            self.ledger.publications.record_verdict(partition, publication, verdict, claim, held)
        except PublicationLapsed:
            # The new rows get their own run, which need not wait until the claim expires.
            self.ledger.partitions.release(partition, claim)
            raise
        if verdict.outcome is Outcome.FAIL:
            self.ledger.partitions.record_why(partition, why)
            self.ledger.partitions.release(partition, claim)
        return verdict

    def commit(
        self,
        partition: Partition,
        publication: str,
        owner: str,
        now: datetime,
        *,
        by_command: bool = False,
    ) -> Committed:
        """Publish a checked publication (design §4, commit order).

        Raises:
            PublicationLapsed: a contribution was added or changed since the check: propose again.
            NotApproved: the gate held it and nobody approved.
            NotCommittable: the partition is not due, and nobody overrode that.
            LedgerBehind: the files are ahead of the ledger, or another ledger replaced this one
                after the revision was published.
            PipelineRetired, RetireUnfinished: the pipeline ends; the next one finishes the commit.
            PolicyUnknown: a policy that the pipeline file names cannot be built.
        """
        self.watch.check_partition(partition)
        claim = self.finisher.claim(partition, owner, now)
        try:
            if not self.finisher.finish(partition, claim, owner, now, only=publication):
                entry = self._committable(partition, publication)
                self._check_turn(entry, now, by_command=by_command)
                claim = self.finisher.claim(partition, owner, now)
                # A prepared commit has to be finished: a lost file or an unknown policy is found
                # before that, while the file can still be corrected.
                with self.finisher.renewing(partition, claim):
                    self.finisher.examine(entry.publication, self.config.commit.policies)
                path = again_if(
                    NumberPassed, functools.partial(self._prepare, entry, claim, owner, now)
                )
                check_not_ending(self.roots, self.config.name, self.storage)
                self.finisher.carry_out(partition, path, claim, owner, now)
        finally:
            # If nothing was begun, or all was done before, others need not wait for expiry.
            if self.ledger.publications.unrecorded(partition) is None:
                self.ledger.partitions.release(partition, claim)
        made = self._made(partition, publication)
        return Committed(
            partition=partition,
            revision=made.revision,
            rows=made.rows,
            watermark=made.watermark,
            windows=tuple(sorted(int(window) for window in made.contributions)),
        )

    def compact(
        self, partition: Partition, rule: CompactionRule, owner: str, now: datetime
    ) -> Committed | None:
        """Join small files of the current revision, whose rows stay as they are (PC-K06).

        The new revision needs no check: it has the rows of the one that was checked.

        Returns:
            None if there is nothing to join, or rows are waiting to be published first.

        Raises:
            ClaimHeld, PartitionBusy: another run works on the partition (Transient).
            LedgerBehind: the files are ahead of the ledger; nothing was changed.
        """
        self.watch.check_newest_window()
        self.watch.check_partition(partition)
        claim, _ = self.finisher.claim_with_nothing_begun(partition, owner, now)
        try:
            # Before it is known that nothing waits: what a load announces later has to wait.
            brought = self.ledger.contributions.to(partition)
            if self.ledger.partitions.get(partition).pending != "none":
                return None
            with self.finisher.renewing(partition, claim):
                following = self.compactor.rewritten(partition, rule, brought)
            if following is None or following.is_empty:
                return None
            self.ledger.publications.propose(following, claim, now)
            verdict = Verdict(Outcome.PASS, (), following.rows, "none", now)
            number = self.ledger.publications.reserve(partition, claim)
            self.gatekeeper.keep(GateRecord(following, verdict, None, {}, None, number))
            digest = following.digest
            self.ledger.publications.record_verdict(partition, digest, verdict, claim, None)
            return self.commit(partition, digest, owner, now, by_command=True)
        finally:
            if self.ledger.publications.unrecorded(partition) is None:
                self.ledger.partitions.release(partition, claim)

    def file_late(self, partition: Partition, owner: str, now: datetime) -> None:
        """Put late rows that do not count where they belong, after their windows were read again.

        Raises:
            ClaimHeld, PartitionBusy: another run works on the partition (Transient).
        """
        claim, _finished = self.finisher.claim_with_nothing_begun(partition, owner, now)
        try:
            standing = self.contents.standing(partition)
            stood = standing.contributions if standing else {}
            seen = self.ledger.contributions.to(partition)
            self.late.file(partition, seen, stood, claim, owner)
        finally:
            self.ledger.partitions.release(partition, claim)

    def _made(self, partition: Partition, publication: str) -> RevisionEntry:
        """Return the revision that was committed.

        Raises:
            LedgerBehind: another ledger has replaced this one.
        """
        for item in self.ledger.publications.revisions(partition):
            if item.digest == publication:
                return item
        raise LedgerBehind(
            pipeline=self.config.name,
            found=f"publication {publication} committed in {partition}",
            known="no such revision",
        )

    def _prepare(self, entry: PublicationEntry, claim: Claim, owner: str, now: datetime) -> str:
        """Write a commit plan and begin the commit; return the plan's path.

        Raises:
            NumberPassed: something newer was recorded in the meantime (Transient).
        """
        number = self.ledger.publications.reserve(entry.publication.partition, claim)
        plans = CommitPlans(self.config, self.roots, self.ledger, self.storage, self.contents)
        path = plans.write(entry, owner, now, number)
        self.ledger.publications.prepare(entry, path, claim, number)
        return path

    def _next_revision(
        self, partition: Partition, claim: Claim, now: datetime
    ) -> Publication | None:
        """Compute the next revision; None, and recorded, if the content would not change."""
        state = self.ledger.partitions.get(partition)
        with self.finisher.renewing(partition, claim):
            following, seen = self._worked_out(state, claim, now)
            while following.is_empty and self._stands(partition, state.revision):
                if self.ledger.partitions.note_standing(partition, claim, seen):
                    return None
                following, seen = self._worked_out(state, claim, now)
        return following

    def _worked_out(
        self, state: PartitionState, claim: Claim, now: datetime
    ) -> tuple[Publication, Sequence[Contribution]]:
        """Settle late rows; return the next revision, and the contributions it was made from."""
        partition = state.partition
        seen = self.ledger.contributions.to(partition)
        while self.late.release(state, seen, now):
            seen = self.ledger.contributions.to(partition)
        standing = self.contents.standing(partition)
        stood = standing.contributions if standing else {}
        self.late.file(partition, seen, stood, claim, claim.owner)
        return self.compactor.next_revision(partition, state, seen), seen

    def _stands(self, partition: Partition, revision: int) -> bool:
        """Return whether the content of a partition, which would not change, is published."""
        if revision:
            return self._is_marked(partition)
        # A static partition is complete without rows, too (PC-F31, V10), and so is an expected one.
        is_empty_too = self.contents.is_declared_empty(partition)
        return not is_empty_too and not self.reviewer.is_marked_empty(partition)

    def _is_marked(self, partition: Partition) -> bool:
        """Return whether the current revision has its marker; one taken back has none."""
        plan = self.contents.standing_plan(partition)
        if plan is None:
            return True
        if not self.finisher.shows(plan.publication):
            return False
        return not writes_marker(plan) or is_marked(
            self.storage, self.roots.revision(plan.publication), plan
        )

    def _proposal(
        self, stored: PublicationEntry, before: PublicationEntry | None = None
    ) -> Proposal:
        """Return the effect of a stored proposal on its partition."""
        shown = stored.publication
        found = self.contents.proposed(shown.partition, shown.digest).publication
        return replace(_in_numbers(found), lapsed=_lapsed(before, found))

    def _committable(self, partition: Partition, publication: str) -> PublicationEntry:
        entry = self.contents.proposed(partition, publication)
        if not self._is_passed(entry):
            raise NotApproved(
                pipeline=self.config.name,
                partition=str(partition),
                outcome=entry.verdict.outcome.value if entry.verdict else "not checked",
            )
        return entry

    def _is_passed(self, entry: PublicationEntry) -> bool:
        """Return whether the gate passed it, and a person approved it if that is required."""
        is_asked = self.config.commit.requires("approval") and not entry.is_approved
        # Joined files have the rows that were approved.
        return entry.may_be_committed and (not is_asked or entry.publication.is_rewrite)

    def _check_turn(self, entry: PublicationEntry, now: datetime, *, by_command: bool) -> None:
        """Evaluate the trigger again, unless a person overrode it."""
        partition = entry.publication.partition
        looked = self.evaluator.evaluate(partition, now)
        if looked is not None and entry.override is None:
            self.evaluator.check(partition, looked, by_command=by_command)


def _in_numbers(publication: Publication) -> Proposal:
    return Proposal(
        partition=publication.partition,
        digest=publication.digest,
        revision=publication.revision,
        rows=publication.rows,
        files_added=len(publication.adds),
        files_removed=len(publication.removes),
    )


def _lapsed(before: PublicationEntry | None, following: Publication) -> str | None:
    """Return the changes since a proposal that somebody had already seen (PC-C06)."""
    if before is None or before.publication.digest == following.digest:
        return None
    if before.verdict is None and before.approval is None:
        return None
    return f"{following.rows - before.rows:+d} rows since"
