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
from tidegate.pipeline.publish.content import filled
from tidegate.pipeline.publish.judged import failed_why
from tidegate.pipeline.state.again import again_if
from tidegate.pipeline.state.work import check_going_on

if TYPE_CHECKING:
    from datetime import datetime

    from tidegate.config import PipelineConfig
    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import Claim, PublicationEntry
    from tidegate.model.partition import Partition
    from tidegate.model.publication import Approval, CommitPlan, Override, Publication
    from tidegate.pipeline.publish.compacting import Compactor
    from tidegate.pipeline.publish.content import Contents, Seen
    from tidegate.pipeline.publish.evaluating import Evaluator
    from tidegate.pipeline.publish.expecting import Reviewer
    from tidegate.pipeline.publish.finishing import Claimed, Finisher
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
    approval: Approval | None = None
    """Who approved what was committed; None if nobody did."""


@dataclass(frozen=True)
class Proposed:
    """A proposal with its content, and what it was made from."""

    entry: PublicationEntry
    before: PublicationEntry | None
    """The proposal before it."""
    seen: Seen


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

    def seen(self, partition: Partition) -> Seen:
        """Return what is known of a partition by now, for steps under a claim.

        Raises:
            PartitionNotFound: the ledger was replaced by one that does not know it.
        """
        known = self.ledger.known_partition(partition)
        if known is None:
            raise self.ledger.partitions.not_found(partition)
        return self.contents.seen(known)

    def proposed(
        self,
        partition: Partition,
        claimed: Claimed,
        now: datetime,
        override: Override | None,
        *,
        by_command: bool,
    ) -> Proposed | None:
        """Compute and store the next revision.

        Returns:
            None, and the claim ended, if there is nothing to propose.

        Raises:
            NotCommittable: it is not due, and nobody overrides that; the claim ended.
        """
        claim, known, pipeline = claimed.claim, claimed.known, claimed.pipeline
        looked = self.evaluator.evaluate_known(known, pipeline, now) if known else None
        if known is None or looked is None:
            self.ledger.partitions.release(partition, claim)
            return None
        try:
            override = self.evaluator.check(partition, looked, override, by_command=by_command)
        except NotCommittable:
            self.ledger.partitions.release(partition, claim)
            raise
        seen = self.contents.seen(known)
        if known.approved is not None:
            self._check_units(known.approved.publication, seen, claim, now)
            return Proposed(filled(known.approved, seen.published), None, seen)
        following, seen = self._next_revision(seen, claim, now)
        if following is None:
            return None
        stored = self.ledger.publications.propose(following, claim, now, override)
        return Proposed(filled(stored, seen.published), known.proposed, seen)

    def passed(self, found: Proposed, claim: Claim, owner: str, now: datetime) -> Passed:
        """Gate and commit a proposal."""
        entry, number = found.entry, None
        verdict = entry.verdict
        is_judged = verdict is None or not self.is_passed(entry)
        if is_judged or verdict is None:
            verdict, number = self.judged(entry, found.seen, claim, owner, now)
            if verdict.outcome is Outcome.FAIL:
                return Passed(verdict)
            # What a person decided since is compared when the commit begins.
            entry = replace(entry, verdict=verdict)
        if not self.is_passed(entry):
            return Passed(verdict)
        # A suite takes its time; without one, the files were examined a moment ago.
        with_files = not is_judged or self.config.gate is not None
        made = self.committed(entry, found.seen, claim, now, with_files=with_files, number=number)
        return Passed(verdict, made, approval=entry.approval)

    def _check_units(self, approved: Publication, seen: Seen, claim: Claim, now: datetime) -> None:
        """Make files of an approved revision again that were assembled for it and are gone.

        Raises:
            UnitLost: they cannot be, because more has come since.
        """
        partition = approved.partition
        if not self.contents.lacks_unit(approved):
            return
        following, _ = self._next_revision(seen, claim, now)
        if following is None or following.digest != approved.digest:
            self.ledger.partitions.release(partition, claim)
            raise UnitLost(pipeline=self.config.name, partition=str(partition))

    def judged(
        self,
        entry: PublicationEntry,
        seen: Seen,
        claim: Claim,
        owner: str,
        now: datetime,
        *,
        asks: bool = False,
    ) -> tuple[Verdict, int]:
        """Check a proposal, and store the verdict; a hold or failure ends the claim.

        Returns:
            The verdict, and a number that is reserved for the commit.
        """
        partition, publication = entry.publication.partition, entry.publication.digest
        # A lost file is reported with its window before an engine fails on it.
        self.finisher.examine(entry.publication, ())
        with self._reading_rows if self.config.gate else contextlib.nullcontext():
            verdict, report = self.gatekeeper.judge(entry, seen, now)
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
        number = self.ledger.publications.reserve(partition, claim, count=2)
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
        return verdict, number + 1

    def committed(
        self,
        entry: PublicationEntry,
        seen: Seen,
        claim: Claim,
        now: datetime,
        *,
        with_files: bool = True,
        number: int | None = None,
    ) -> Committed:
        """Prepare a checked publication, and carry it out; recording it ends the claim.

        Args:
            entry: the publication.
            seen: what it was made from, read under the claim.
            claim: the caller's.
            now: clock of the run.
            with_files: False: its files were examined a moment ago.
            number: one that is reserved for this commit; None: it is reserved here.
        """
        # A prepared commit has to be finished: a lost file or an unknown policy is found before
        # that, while the file can still be corrected.
        policies = self.config.commit.policies
        self.finisher.examine(entry.publication, policies, with_files=with_files)
        numbers = [] if number is None else [number]
        path, plan = again_if(
            NumberPassed, functools.partial(self._prepare, entry, seen, claim, now, numbers)
        )
        # Whoever begins to end or reset the pipeline after this takes the claim.
        check_going_on(self.roots, self.config.name, self.storage)
        self.finisher.carry_out(path, plan, claim, claim.owner, now)
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
        self,
        entry: PublicationEntry,
        seen: Seen,
        claim: Claim,
        now: datetime,
        reserved: list[int],
    ) -> tuple[str, CommitPlan]:
        """Write a commit plan and begin the commit; return the plan's path, and the plan.

        Numbers that are reserved are used up, each by one attempt.

        Raises:
            NumberPassed: something newer was recorded in the meantime (Transient).
        """
        partition = entry.publication.partition
        number = reserved.pop() if reserved else self.ledger.publications.reserve(partition, claim)
        plans = CommitPlans(self.config, self.roots, self.ledger, self.storage, self.contents)
        path, plan = plans.write(entry, seen, claim.owner, now, number)
        self.ledger.publications.prepare(entry, path, claim, number)
        return path, plan

    def _next_revision(
        self, seen: Seen, claim: Claim, now: datetime
    ) -> tuple[Publication | None, Seen]:
        """Compute the next revision; None, and recorded, if the content would not change.

        Returns:
            The revision, and what it was made from.
        """
        with self._reading_rows if self._makes_files else contextlib.nullcontext():
            return self._following(seen, claim, now)

    @property
    def _makes_files(self) -> bool:
        target = self.config.target
        return target.write == "upsert" or target.compaction is not None

    def _following(
        self, seen: Seen, claim: Claim, now: datetime
    ) -> tuple[Publication | None, Seen]:
        partition = seen.state.partition
        following, seen = self._worked_out(seen, claim, now)
        while following.is_empty and self._stands(partition, seen.state.revision):
            if self.ledger.partitions.note_standing(partition, claim, seen.contributions):
                return None, seen
            following, seen = self._worked_out(self._brought_since(seen), claim, now)
        return following, seen

    def _brought_since(self, seen: Seen) -> Seen:
        """Read again what windows brought."""
        return replace(seen, contributions=self.ledger.contributions.to(seen.state.partition))

    def _worked_out(self, seen: Seen, claim: Claim, now: datetime) -> tuple[Publication, Seen]:
        """Settle late rows; return the next revision, and what it was made from."""
        partition = seen.state.partition
        while self.late.release(seen.state, seen.contributions, now):
            seen = self._brought_since(seen)
        self.late.file(partition, seen.contributions, seen.stood, claim, claim.owner)
        return self.compactor.next_revision(seen), seen

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
