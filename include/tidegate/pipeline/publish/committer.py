"""Turn contributions into the current revision.

Propose, gate, commit, one partition at a time. Each step checks its requirements itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidegate.errors import NotApproved
from tidegate.model.publication import (
    GateRecord,
    Outcome,
    Publication,
    PublicationState,
    Verdict,
)
from tidegate.model.run import Committed, Proposal
from tidegate.pipeline.publish.under_claim import Passed, UnderClaim

if TYPE_CHECKING:
    from datetime import datetime

    from tidegate.model.ledger_rows import Claim, PublicationEntry
    from tidegate.model.partition import Partition
    from tidegate.model.publication import Override
    from tidegate.pipeline.publish.finishing import Claimed
    from tidegate.pipeline.state.behind import Watch
    from tidegate.target.compaction import CompactionRule


@dataclass(frozen=True)
class Committer:
    """The second half of a pipeline, for one partition at a time.

    Runs on: one process per partition. Called: at least once per revision.
    Failure: a publication that was prepared is finished by the next call, with the same written
    list; one that was not is proposed again.
    """

    steps: UnderClaim
    """Those of one partition, under a claim."""
    watch: Watch

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
        claimed = self._claimed(partition, owner, now)
        claim = claimed.claim
        if claimed.finished is not None:
            self.steps.ledger.partitions.release(partition, claim)
            return replace(_in_numbers(claimed.finished), stands=True)
        with self.steps.finisher.renewing(partition, claim) as held:
            found = self.steps.proposed(partition, claimed, now, override, by_command=by_command)
            held.end()
        if found is None:
            return None
        following = found.entry.publication
        return replace(_in_numbers(following), lapsed=_lapsed(found.before, following))

    def publish(
        self,
        partition: Partition,
        owner: str,
        now: datetime,
        override: Override | None = None,
        *,
        by_command: bool = False,
    ) -> Passed:
        """Propose, gate and commit under one claim, which is held from the first to the last step.

        What the steps check again, because others may have come in between, is checked once here:
        the claim's fence, which every transaction compares, and the lock decide who may go on.

        Raises:
            ClaimHeld: another run works on the partition (Transient).
            NotCommittable: it is not due, and nobody overrides that.
            PublicationLapsed: a contribution was added or changed meanwhile: publish again.
            LedgerBehind: the files are ahead of the ledger; nothing was changed.
            TidegateError: as `gate` and `commit`.
        """
        claimed = self._claimed(partition, owner, now)
        claim, is_held = claimed.claim, True
        try:
            if claimed.finished is not None:
                return Passed(stands=True)
            with self.steps.finisher.renewing(partition, claim) as held:
                found = self.steps.proposed(
                    partition, claimed, now, override, by_command=by_command
                )
                passed = self.steps.passed(found, claim, owner, now) if found else Passed()
                held.end()
            is_held = found is not None and passed.committed is None
            return passed
        finally:
            if is_held:
                self._let_go(partition, claim)

    def _claimed(self, partition: Partition, owner: str, now: datetime) -> Claimed:
        """Compare the files with the ledger, then claim the partition with nothing begun."""
        known = self.watch.check_partition(partition)
        found = known.state if known else None
        return self.steps.finisher.claim_with_nothing_begun(partition, owner, now, found)

    def _let_go(self, partition: Partition, claim: Claim) -> None:
        """End a claim, so that others need not wait for its expiry, unless a commit was begun."""
        if self.steps.ledger.publications.unrecorded(partition) is None:
            self.steps.ledger.partitions.release(partition, claim)

    def held(self, partition: Partition) -> Proposal | None:
        """Return what a held partition waits with for a person's decision."""
        stored = self.steps.ledger.publications.proposed(partition)
        if stored is None:
            return None
        return _in_numbers(
            self.steps.contents.proposed(partition, stored.publication.digest).publication
        )

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
        done = self.steps.ledger.publications.find(partition, publication)
        if done is not None and done.state is PublicationState.RECORDED and done.verdict:
            return done.verdict
        entry = self.steps.contents.proposed(partition, publication)
        if entry.verdict is not None and self.steps.is_passed(entry):
            return entry.verdict
        # Before a number is reserved: afterwards the ledger would seem to know an older record.
        self.watch.check_records(partition)
        claim = self.steps.finisher.claim(partition, owner, now)
        with self.steps.finisher.renewing(partition, claim) as held:
            seen = self.steps.seen(partition)
            verdict, _ = self.steps.judged(entry, seen, claim, owner, now, asks=asks)
            held.end()
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
        claim, is_held = self.steps.finisher.claim(partition, owner, now), True
        try:
            has_begun = self.steps.ledger.publications.unrecorded(partition) is not None
            if self.steps.finisher.finish(partition, claim, owner, now, only=publication):
                return self.steps.made(partition, publication)
            entry = self._committable(partition, publication)
            self._check_turn(entry, now, by_command=by_command)
            if has_begun:
                # Recording what a predecessor began has ended the claim.
                claim = self.steps.finisher.claim(partition, owner, now)
            with self.steps.finisher.renewing(partition, claim) as held:
                seen = self.steps.seen(partition)
                made = self.steps.committed(entry, seen, claim, now)
                held.end()
            is_held = False
            return made
        finally:
            if is_held:
                self._let_go(partition, claim)

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
        claim = self._claimed(partition, owner, now).claim
        try:
            # Before it is known that nothing waits: what a load announces later has to wait.
            brought = self.steps.ledger.contributions.to(partition)
            if self.steps.ledger.partitions.get(partition).pending != "none":
                return None
            with self.steps.finisher.renewing(partition, claim):
                following = self.steps.compactor.rewritten(partition, rule, brought)
            if following is None or following.is_empty:
                return None
            self.steps.ledger.publications.propose(following, claim, now)
            verdict = Verdict(Outcome.PASS, (), following.rows, "none", now)
            number = self.steps.ledger.publications.reserve(partition, claim)
            self.steps.gatekeeper.keep(GateRecord(following, verdict, None, {}, None, number))
            digest = following.digest
            self.steps.ledger.publications.record_verdict(partition, digest, verdict, claim, None)
            return self.commit(partition, digest, owner, now, by_command=True)
        finally:
            self._let_go(partition, claim)

    def file_late(self, partition: Partition, owner: str, now: datetime) -> None:
        """Put late rows that do not count where they belong, after their windows were read again.

        Raises:
            ClaimHeld, PartitionBusy: another run works on the partition (Transient).
        """
        claim = self.steps.finisher.claim_with_nothing_begun(partition, owner, now).claim
        try:
            standing = self.steps.contents.standing(partition)
            stood = standing.contributions if standing else {}
            seen = self.steps.ledger.contributions.to(partition)
            self.steps.late.file(partition, seen, stood, claim, owner)
        finally:
            self.steps.ledger.partitions.release(partition, claim)

    def _committable(self, partition: Partition, publication: str) -> PublicationEntry:
        entry = self.steps.contents.proposed(partition, publication)
        if not self.steps.is_passed(entry):
            raise NotApproved(
                pipeline=self.steps.config.name,
                partition=str(partition),
                outcome=entry.verdict.outcome.value if entry.verdict else "not checked",
            )
        return entry

    def _check_turn(self, entry: PublicationEntry, now: datetime, *, by_command: bool) -> None:
        """Evaluate the trigger again, unless a person overrode it."""
        partition = entry.publication.partition
        looked = self.steps.evaluator.evaluate(partition, now)
        if looked is not None and entry.override is None:
            self.steps.evaluator.check(partition, looked, by_command=by_command)


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
