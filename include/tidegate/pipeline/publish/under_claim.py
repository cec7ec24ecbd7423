"""What is done to a partition under a claim: work out its next revision, judge it, commit it.

Who calls holds the claim and renews it; each transaction compares its fence.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tidegate.commit.publisher import is_marked
from tidegate.errors import (
    LedgerBehind,
    NotCommittable,
    NumberPassed,
    PublicationLapsed,
    UnitLost,
)
from tidegate.model.publication import GateRecord, Outcome, Verdict
from tidegate.model.run import Committed
from tidegate.pipeline.publish.commit_plans import CommitPlans, writes_marker
from tidegate.pipeline.publish.judged import failed_why
from tidegate.pipeline.state.again import again_if
from tidegate.pipeline.state.work import check_going_on

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tidegate.config import PipelineConfig
    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import Claim, PartitionState, PublicationEntry
    from tidegate.model.message import Contribution
    from tidegate.model.partition import Partition
    from tidegate.model.publication import CommitPlan, Override, Publication
    from tidegate.pipeline.publish.compacting import Compactor
    from tidegate.pipeline.publish.content import Contents
    from tidegate.pipeline.publish.evaluating import Evaluator
    from tidegate.pipeline.publish.expecting import Reviewer
    from tidegate.pipeline.publish.finishing import Finisher
    from tidegate.pipeline.publish.gating import Gatekeeper
    from tidegate.pipeline.publish.late import LateRows
    from tidegate.pipeline.state.places import Roots
    from tidegate.storage import Storage


@dataclass(frozen=True)
class Passed:
    """How far a partition came in one go."""

    verdict: Verdict | None = None
    """That of the gate; None: nothing was proposed, or a predecessor's commit was finished."""
    committed: Committed | None = None
    stands: bool = False
    """Whether a predecessor's commit was finished, whatever follows it."""


@dataclass(frozen=True)
class UnderClaim:
    """The steps of a publish, for one partition at a time.

    Runs on: one process per partition, under its claim. Called: at least once per revision.
    Failure: what was prepared is finished by the next claim; the rest is worked out again.
    """

    config: PipelineConfig
    roots: Roots
    ledger: Ledger
    storage: Storage
    contents: Contents
    gatekeeper: Gatekeeper
    evaluator: Evaluator
    finisher: Finisher
    compactor: Compactor
    """Works out what the next revision is made of."""
    late: LateRows
    reviewer: Reviewer
    _reading_rows: threading.Lock = field(default_factory=threading.Lock, compare=False)
    """Held while rows are read: partitions that are published at once need no more memory than one
    after the other, and the library of the gate knows no threads."""

    def proposed(
        self,
        partition: Partition,
        claim: Claim,
        now: datetime,
        override: Override | None,
        *,
        by_command: bool,
    ) -> tuple[PublicationEntry, PublicationEntry | None] | None:
        """Compute and store the next revision.

        Returns:
            The proposal with its content, and the one before it; None, and the claim ended, if
            there is nothing to propose.

        Raises:
            NotCommittable: it is not due, and nobody overrides that; the claim ended.
        """
        known = self.ledger.known_partition(partition)
        looked = self.evaluator.evaluate_known(known, now) if known else None
        if known is None or looked is None:
            self.ledger.partitions.release(partition, claim)
            return None
        try:
            override = self.evaluator.check(partition, looked, override, by_command=by_command)
        except NotCommittable:
            self.ledger.partitions.release(partition, claim)
            raise
        if known.approved is not None:
            self._check_units(known.approved.publication, known.state, claim, now)
            return self.contents.proposed(partition, known.approved.publication.digest), None
        following = self._next_revision(known.state, claim, now)
        if following is None:
            return None
        stored = self.ledger.publications.propose(following, claim, now, override)
        return self.contents.proposed(partition, stored.publication.digest), known.proposed

    def passed(self, entry: PublicationEntry, claim: Claim, owner: str, now: datetime) -> Passed:
        """Gate and commit a proposal."""
        partition, verdict = entry.publication.partition, entry.verdict
        is_judged = verdict is None or not self.is_passed(entry)
        if is_judged or verdict is None:
            verdict = self.judged(entry, claim, owner, now)
            if verdict.outcome is Outcome.FAIL:
                return Passed(verdict)
            entry = self.contents.proposed(partition, entry.publication.digest)
        if not self.is_passed(entry):
            return Passed(verdict)
        # A suite takes its time; without one, the files were examined a moment ago.
        with_files = not is_judged or self.config.gate is not None
        made = self.committed(entry, claim, owner, now, with_files=with_files)
        return Passed(verdict, made)

    def _check_units(
        self, approved: Publication, state: PartitionState, claim: Claim, now: datetime
    ) -> None:
        """Make files of an approved revision again that were assembled for it and are gone.

        Raises:
            UnitLost: they cannot be, because more has come since.
        """
        partition = approved.partition
        if not self.contents.lacks_unit(approved):
            return
        following = self._next_revision(state, claim, now)
        if following is None or following.digest != approved.digest:
            self.ledger.partitions.release(partition, claim)
            raise UnitLost(pipeline=self.config.name, partition=str(partition))

    def judged(
        self,
        entry: PublicationEntry,
        claim: Claim,
        owner: str,
        now: datetime,
        *,
        asks: bool = False,
    ) -> Verdict:
        """Check a proposal, and store the verdict; a hold or failure ends the claim."""
        partition, publication = entry.publication.partition, entry.publication.digest
        # A lost file is reported with its window before an engine fails on it.
        self.finisher.examine(entry.publication, ())
        with self._reading_rows if self.config.gate else contextlib.nullcontext():
            verdict, report = self.gatekeeper.judge(partition, entry, now)
        # Before the verdict is known to others, who then look at what is held.
        if verdict.outcome is Outcome.HOLD:
            self.finisher.hold(entry.publication, owner)
        elif verdict.outcome is Outcome.FAIL:
            self.finisher.drop_held(partition)
        why = held = None
        if verdict.outcome in {Outcome.HOLD, Outcome.FAIL}:
            why = failed_why(verdict, now, self.ledger.partitions.get(partition).why)
        if why is not None and verdict.outcome is Outcome.HOLD:
            held = replace(why, waiting=owner) if asks else why
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
        if why is not None and verdict.outcome is Outcome.FAIL:
            self.ledger.partitions.record_why(partition, why)
            self.ledger.partitions.release(partition, claim)
        return verdict

    def committed(
        self,
        entry: PublicationEntry,
        claim: Claim,
        owner: str,
        now: datetime,
        *,
        with_files: bool = True,
    ) -> Committed:
        """Prepare a checked publication, and carry it out; recording it ends the claim."""
        # A prepared commit has to be finished: a lost file or an unknown policy is found before
        # that, while the file can still be corrected.
        policies = self.config.commit.policies
        self.finisher.examine(entry.publication, policies, with_files=with_files)
        path, plan = again_if(
            NumberPassed, functools.partial(self._prepare, entry, claim, owner, now)
        )
        # Whoever begins to end or reset the pipeline after this takes the claim.
        check_going_on(self.roots, self.config.name, self.storage)
        self.finisher.carry_out(path, plan, claim, owner, now)
        return self.made(entry.publication.partition, entry.publication.digest)

    def made(self, partition: Partition, publication: str) -> Committed:
        """Return what the ledger has of the revision that was committed.

        Raises:
            LedgerBehind: another ledger has replaced this one.
        """
        for item in self.ledger.publications.revisions(partition):
            if item.digest == publication:
                return Committed(
                    partition=partition,
                    revision=item.revision,
                    rows=item.rows,
                    watermark=item.watermark,
                    windows=tuple(sorted(int(window) for window in item.contributions)),
                )
        raise LedgerBehind(
            pipeline=self.config.name,
            found=f"publication {publication} committed in {partition}",
            known="no such revision",
        )

    def _prepare(
        self, entry: PublicationEntry, claim: Claim, owner: str, now: datetime
    ) -> tuple[str, CommitPlan]:
        """Write a commit plan and begin the commit; return the plan's path, and the plan.

        Raises:
            NumberPassed: something newer was recorded in the meantime (Transient).
        """
        number = self.ledger.publications.reserve(entry.publication.partition, claim)
        plans = CommitPlans(self.config, self.roots, self.ledger, self.storage, self.contents)
        path, plan = plans.write(entry, owner, now, number)
        self.ledger.publications.prepare(entry, path, claim, number)
        return path, plan

    def _next_revision(
        self, state: PartitionState, claim: Claim, now: datetime
    ) -> Publication | None:
        """Compute the next revision; None, and recorded, if the content would not change."""
        with self._reading_rows if self._makes_files else contextlib.nullcontext():
            return self._following(state, claim, now)

    @property
    def _makes_files(self) -> bool:
        target = self.config.target
        return target.write == "upsert" or target.compaction is not None

    def _following(self, state: PartitionState, claim: Claim, now: datetime) -> Publication | None:
        partition = state.partition
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

    def is_passed(self, entry: PublicationEntry) -> bool:
        """Return whether the gate passed it, and a person approved it if that is required."""
        is_asked = self.config.commit.requires("approval") and not entry.is_approved
        # Joined files have the rows that were approved.
        return entry.may_be_committed and (not is_asked or entry.publication.is_rewrite)
