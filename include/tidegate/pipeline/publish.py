"""From contributions to a standing revision.

Propose, gate, commit, one partition at a time. Each step checks for itself what it relies on.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.commit.publisher import Publisher
from tidegate.errors import NotCommittable, NotHeld, PublicationLapsed
from tidegate.ledger.holder import Holder
from tidegate.model.publication import (
    GateRecord,
    Outcome,
    PolicySpec,
    Publication,
    PublicationState,
    Verdict,
)
from tidegate.model.run import Committed, Proposal
from tidegate.pipeline.commit_plans import CommitPlans, build_policy, revision_of
from tidegate.pipeline.gating import failed_why
from tidegate.pipeline.numbering import again_if_passed
from tidegate.pipeline.renewing import Renewing, renewing_claim

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from tidegate.config import PipelineConfig
    from tidegate.ledger import Ledger
    from tidegate.ledger.holder import Life
    from tidegate.model.ledger_rows import Claim, PublicationEntry
    from tidegate.model.partition import Partition
    from tidegate.model.publication import Override
    from tidegate.pipeline.behind import Watch
    from tidegate.pipeline.content import Contents
    from tidegate.pipeline.evaluating import Evaluator
    from tidegate.pipeline.gating import Gatekeeper
    from tidegate.pipeline.work import Roots
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
    watch: Watch
    life_of: Callable[[str], Life]
    """Finds out what became of the run that holds a partition."""

    def propose(
        self,
        partition: Partition,
        owner: str,
        now: datetime,
        override: Override | None = None,
        *,
        by_command: bool = False,
    ) -> Proposal | None:
        """Finish what a predecessor began, then work out and store the next revision.

        What a person let out goes first, as it was shown; what came since waits for the revision
        after it (design §4).

        Returns:
            None when the partition's content is what stands, or a person has to decide first.

        Raises:
            ClaimHeld: another run works on the partition (Transient).
            NotCommittable: its turn has not come, and nobody overrules that.
            LedgerBehind: the files know more than the ledger; nothing was changed.
        """
        self.watch.check_newest_window()
        self.watch.check_partition(partition)
        claim = self._claim_with_nothing_begun(partition, owner, now)
        looked = self.evaluator.evaluate(partition, now)
        if looked is None:
            self.ledger.partitions.release(partition, claim)
            return None
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

        A verdict that lets the commit go on, or that a person overruled, is not worked out again.

        Raises:
            PublicationLapsed: the proposal was replaced meanwhile.
        """
        entry = self.contents.proposed(partition, publication)
        if entry.verdict is not None and entry.may_be_committed:
            return entry.verdict
        claim = self._claim(partition, owner, now)
        with self._renewing(partition, claim):
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
            NotHeld: the gate held it and nobody approved.
            NotCommittable: the partition's turn has not come, and nobody overruled that.
        """
        claim = self._claim(partition, owner, now)
        try:
            if not self._finish(partition, claim, owner, now, only=publication):
                entry = self._committable(partition, publication)
                self._check_turn(entry, now, by_command=by_command)
                claim = self._claim(partition, owner, now)
                # What was prepared has to be finished first: a lost file is found before that.
                with self._renewing(partition, claim):
                    self._publisher(entry.publication).examine(entry.publication)
                path = again_if_passed(functools.partial(self._prepare, entry, claim, owner, now))
                self._carry_out(partition, path, claim, owner, now)
        finally:
            # Where nothing was begun, or all was done before, others need not wait for its end.
            if self.ledger.publications.unrecorded(partition) is None:
                self.ledger.partitions.release(partition, claim)
        made = next(
            item
            for item in self.ledger.publications.revisions(partition)
            if item.digest == publication
        )
        return Committed(
            partition=partition,
            revision=made.revision,
            rows=made.rows,
            watermark=made.watermark,
            windows=tuple(sorted(int(window) for window in made.contributions)),
        )

    def _prepare(self, entry: PublicationEntry, claim: Claim, owner: str, now: datetime) -> str:
        """Write a commit plan and begin the commit; where the plan stands.

        Raises:
            NumberPassed: something newer was recorded meanwhile (Transient).
        """
        number = self.ledger.publications.reserve(entry.publication.partition, claim)
        plans = CommitPlans(self.config, self.roots, self.ledger, self.storage)
        path = plans.write(entry, owner, now, number)
        self.ledger.publications.prepare(entry, path, claim, number)
        return path

    def _claim_with_nothing_begun(self, partition: Partition, owner: str, now: datetime) -> Claim:
        """Claim the partition and finish every commit that was begun; recording ends a claim."""
        claim = self._claim(partition, owner, now)
        while self.ledger.publications.unrecorded(partition) is not None:
            self._finish(partition, claim, owner, now)
            claim = self._claim(partition, owner, now)
        return claim

    def _drafted(self, partition: Partition, claim: Claim) -> Publication | None:
        """Work out the next revision; None, and noted, where it would be what stands."""
        state = self.ledger.partitions.get(partition)
        with self._renewing(partition, claim):
            drafted = self.contents.drafted(partition, state)
            while drafted.is_empty:
                if self.ledger.partitions.settle(partition, claim, drafted.contributions):
                    return None
                drafted = self.contents.drafted(partition, state)
        return drafted

    def _proposal(
        self, stored: PublicationEntry, before: PublicationEntry | None = None
    ) -> Proposal:
        """Say what a stored proposal would make of its partition."""
        partition = stored.publication.partition
        found = self.contents.proposed(partition, stored.publication.digest).publication
        return Proposal(
            partition=partition,
            digest=found.digest,
            revision=found.revision,
            rows=found.rows,
            files_added=len(found.adds),
            files_removed=len(found.removes),
            lapsed=_lapsed(before, found),
        )

    def _claim(self, partition: Partition, owner: str, now: datetime) -> Claim:
        """Claim the partition; from a predecessor only while it is not moving files.

        One that is inside its lock goes on undisturbed; one before it finds its claim gone.

        Raises:
            ClaimHeld, PartitionBusy: another run is at work (Transient).
        """
        holder = Holder(owner, now, self.config.execute.claim_timeout, self.life_of)
        held = self.ledger.partitions
        if held.get(partition).owner is None or not held.is_free(partition, holder):
            return held.claim(partition, holder)
        with self.storage.lock(self.roots.places(partition, 0).lock, owner):
            return held.claim(partition, holder)

    def _renewing(self, partition: Partition, claim: Claim) -> Renewing:
        timeout = self.config.execute.claim_timeout
        return renewing_claim(self.ledger, partition, claim, timeout)

    def _finish(
        self, partition: Partition, claim: Claim, owner: str, now: datetime, only: str | None = None
    ) -> bool:
        """Carry out an unrecorded publication that a predecessor left.

        Whether it was the wanted one.
        """
        entry = self.ledger.publications.unrecorded(partition)
        if entry is None:
            done = self.ledger.publications.find(partition, only) if only else None
            return done is not None and done.state is PublicationState.RECORDED
        self._carry_out(partition, str(entry.commit_plan), claim, owner, now)
        return entry.publication.digest == only

    def _committable(self, partition: Partition, publication: str) -> PublicationEntry:
        entry = self.contents.proposed(partition, publication)
        if not entry.may_be_committed:
            outcome = entry.verdict.outcome.value if entry.verdict else "not checked"
            raise NotHeld(
                pipeline=self.config.name,
                partition=str(partition),
                state=f"{outcome}, not approved",
            )
        return entry

    def _check_turn(self, entry: PublicationEntry, now: datetime, *, by_command: bool) -> None:
        """Look at the trigger again, unless a person overruled it."""
        partition = entry.publication.partition
        looked = self.evaluator.evaluate(partition, now)
        if looked is not None and entry.override is None:
            self.evaluator.check(partition, looked, by_command=by_command)

    def _publisher(
        self, publication: Publication, policies: Sequence[PolicySpec] = ()
    ) -> Publisher:
        places = self.roots.places(publication.partition, publication.revision)
        built = [(spec.name, build_policy(spec)) for spec in policies]
        return Publisher(self.storage, places, built)

    def _carry_out(
        self, partition: Partition, path: str, claim: Claim, owner: str, now: datetime
    ) -> None:
        plan = self.contents.read_commit_plan(f"{self.roots.work}/{path}")
        publication = plan.publication
        steps = _Steps(self.ledger, self.watch, publication, claim)
        with self._renewing(partition, claim):
            self._publisher(publication, plan.policies).carry_out(plan, owner, steps)
        self.ledger.publications.record(revision_of(plan, path, owner, now), claim)


@dataclass(frozen=True)
class _Steps:
    """Hands the publisher's progress to the ledger, under one claim."""

    ledger: Ledger
    watch: Watch
    publication: Publication
    claim: Claim

    def check_right(self) -> None:
        # The file first, then the ledger: see `behind`.
        self.watch.check_commit(self.publication)
        self.ledger.partitions.check_fence(self.publication.partition, self.claim)

    def advance(self, to: PublicationState) -> None:
        target, digest = self.publication.partition, self.publication.digest
        self.ledger.publications.advance(target, digest, to, self.claim)


def _lapsed(before: PublicationEntry | None, drafted: Publication) -> str | None:
    """Say what changed against a proposal that somebody had already looked at (PC-C06)."""
    if before is None or before.publication.digest == drafted.digest:
        return None
    if before.verdict is None and before.approval is None:
        return None
    return f"{drafted.rows - before.rows:+d} rows since"
