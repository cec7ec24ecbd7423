"""From contributions to a standing revision.

Propose, gate, commit, one partition at a time. Each step checks for itself what it relies on.
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
from tidegate.pipeline.publish.gating import failed_why
from tidegate.pipeline.state.again import again_if

if TYPE_CHECKING:
    from datetime import datetime

    from tidegate.config import PipelineConfig
    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import Claim, PublicationEntry, RevisionEntry
    from tidegate.model.partition import Partition
    from tidegate.model.publication import Override
    from tidegate.pipeline.publish.content import Contents
    from tidegate.pipeline.publish.evaluating import Evaluator
    from tidegate.pipeline.publish.finishing import Finisher
    from tidegate.pipeline.publish.gating import Gatekeeper
    from tidegate.pipeline.state.behind import Watch
    from tidegate.pipeline.state.work import Roots
    from tidegate.storage import Storage


@dataclass(frozen=True)
class Committer:
    """The second half of a pipeline: once per partition.

    Runs on: one process per partition. Called: at least once per revision.
    Failure: a publication that was prepared is finished by the next call, by the same written list;
    one that was not is proposed again.
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

    def propose(
        self,
        partition: Partition,
        owner: str,
        now: datetime,
        override: Override | None = None,
        *,
        by_command: bool = False,
    ) -> Proposal | None:
        """Finish what a predecessor began; where nothing was, work out and store the next revision.

        What a person let out goes first, as it was shown; what came since waits for the revision
        after it (design §4).

        Returns:
            None when the partition's content is what stands, or a person has to decide first. Where
            a predecessor's revision was finished, that one, whatever follows it: whoever commits it
            tells its consumers, of whom nobody else thinks any more.

        Raises:
            ClaimHeld: another run works on the partition (Transient).
            NotCommittable: its turn has not come, and nobody overrules that.
            LedgerBehind: the files know more than the ledger; nothing was changed.
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
            return self._proposal(approved)
        before = self.ledger.publications.proposed(partition)
        drafted = self._drafted(partition, claim)
        if drafted is None:
            return None
        stored = self.ledger.publications.propose(drafted, claim, now, override)
        return self._proposal(stored, before)

    def gate(self, partition: Partition, publication: str, owner: str, now: datetime) -> Verdict:
        """Check a partition as it would stand, and store the verdict; with a hold the claim ends.

        A verdict that lets the commit go on, or that a person overruled, is not worked out again,
        nor is that of a revision that stands.

        Raises:
            PublicationLapsed: the proposal was replaced meanwhile.
            StagedFileMissing, FileLengthWrong, FileContentWrong: a file was lost or damaged.
            LedgerBehind: the files know more than the ledger; nothing was changed.
        """
        done = self.ledger.publications.find(partition, publication)
        if done is not None and done.state is PublicationState.RECORDED and done.verdict:
            return done.verdict
        entry = self.contents.proposed(partition, publication)
        if entry.verdict is not None and entry.may_be_committed:
            return entry.verdict
        # Before a number is reserved: with that, the ledger would seem to know an older record.
        self.watch.check_records(partition)
        claim = self.finisher.claim(partition, owner, now)
        with self.finisher.renewing(partition, claim):
            # A lost file is named with its window before an engine stumbles over it.
            self.finisher.examine(entry.publication, ())
            verdict, report = self.gatekeeper.judge(partition, entry, now)
        why = failed_why(verdict, now)
        held = why if verdict.outcome is Outcome.HOLD else None
        number = self.ledger.publications.reserve(partition, claim)
        self.gatekeeper.keep(
            GateRecord(entry.publication, verdict, held, report, entry.override, number)
        )
        try:
            self.ledger.publications.record_verdict(partition, publication, verdict, claim, held)
        except PublicationLapsed:
            # The rows that came have a run of their own, which need not wait for the claim's end.
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
        """Make a checked publication stand (design §4, commit order).

        Raises:
            PublicationLapsed: a contribution came or changed since the check: propose again.
            NotApproved: the gate held it and nobody approved.
            NotCommittable: the partition's turn has not come, and nobody overruled that.
            LedgerBehind: the files know more than the ledger, or another one took this one's place
                once the revision stood.
            PolicyUnknown: a policy that the pipeline file names cannot be built.
        """
        self.watch.check_partition(partition)
        claim = self.finisher.claim(partition, owner, now)
        try:
            if not self.finisher.finish(partition, claim, owner, now, only=publication):
                entry = self._committable(partition, publication)
                self._check_turn(entry, now, by_command=by_command)
                claim = self.finisher.claim(partition, owner, now)
                # What was prepared has to be finished: a lost file or an unknown policy is found
                # before that, while the file can still be corrected.
                with self.finisher.renewing(partition, claim):
                    self.finisher.examine(entry.publication, self.config.commit.policies)
                path = again_if(
                    NumberPassed, functools.partial(self._prepare, entry, claim, owner, now)
                )
                self.finisher.carry_out(partition, path, claim, owner, now)
        finally:
            # Where nothing was begun, or all was done before, others need not wait for its end.
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

    def _made(self, partition: Partition, publication: str) -> RevisionEntry:
        """Return the revision that was committed.

        Raises:
            LedgerBehind: another ledger stands there since.
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
        """Write a commit plan and begin the commit; where the plan stands.

        Raises:
            NumberPassed: something newer was recorded meanwhile (Transient).
        """
        number = self.ledger.publications.reserve(entry.publication.partition, claim)
        plans = CommitPlans(self.config, self.roots, self.ledger, self.storage, self.contents)
        path = plans.write(entry, owner, now, number)
        self.ledger.publications.prepare(entry, path, claim, number)
        return path

    def _drafted(self, partition: Partition, claim: Claim) -> Publication | None:
        """Work out the next revision; None, and noted, where it would be what stands."""
        state = self.ledger.partitions.get(partition)
        with self.finisher.renewing(partition, claim):
            drafted = self.contents.drafted(partition, state)
            while drafted.is_empty and self._is_marked(partition):
                if self.ledger.partitions.note_standing(partition, claim, drafted.contributions):
                    return None
                drafted = self.contents.drafted(partition, state)
        return drafted

    def _is_marked(self, partition: Partition) -> bool:
        """Whether what stands has its marker: a commit that was taken back leaves none."""
        plan = self.contents.standing_plan(partition)
        if plan is None or not writes_marker(plan):
            return True
        return is_marked(self.storage, self.roots.partition(partition), plan)

    def _proposal(
        self, stored: PublicationEntry, before: PublicationEntry | None = None
    ) -> Proposal:
        """Return what a stored proposal would make of its partition."""
        shown = stored.publication
        found = self.contents.proposed(shown.partition, shown.digest).publication
        return replace(_in_numbers(found), lapsed=_lapsed(before, found))

    def _committable(self, partition: Partition, publication: str) -> PublicationEntry:
        entry = self.contents.proposed(partition, publication)
        if not entry.may_be_committed:
            raise NotApproved(
                pipeline=self.config.name,
                partition=str(partition),
                outcome=entry.verdict.outcome.value if entry.verdict else "not checked",
            )
        return entry

    def _check_turn(self, entry: PublicationEntry, now: datetime, *, by_command: bool) -> None:
        """Look at the trigger again, unless a person overruled it."""
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


def _lapsed(before: PublicationEntry | None, drafted: Publication) -> str | None:
    """Return what changed against a proposal that somebody had already looked at (PC-C06)."""
    if before is None or before.publication.digest == drafted.digest:
        return None
    if before.verdict is None and before.approval is None:
        return None
    return f"{drafted.rows - before.rows:+d} rows since"
