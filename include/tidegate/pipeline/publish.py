"""From contributions to a standing revision.

Evaluate, propose, gate, commit, one partition at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tidegate.commit.policies import BUILT_IN, CommitPolicy
from tidegate.commit.policies.custom import load_custom
from tidegate.commit.publisher import Publisher
from tidegate.commit.triggers import evaluate
from tidegate.commit.watermark import is_idle
from tidegate.config import CustomPolicy, PipelineConfig
from tidegate.errors import NotHeld, PublicationLapsed
from tidegate.ledger.holder import Holder
from tidegate.model.ledger_rows import Claim, PublicationEntry, RevisionEntry
from tidegate.model.publication import (
    CommitPlan,
    GateRecord,
    Outcome,
    PolicySpec,
    Publication,
    PublicationState,
    Verdict,
)
from tidegate.model.run import Committed, Proposal
from tidegate.model.watermark import Evaluation
from tidegate.model.wire import instant_text, pretty
from tidegate.pipeline.gating import failed_why
from tidegate.pipeline.renewing import Renewing, renewing_claim
from tidegate.stage import layout
from tidegate.target.marker import MarkerFacts, write_marker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from tidegate.ledger import Ledger
    from tidegate.ledger.holder import Life
    from tidegate.model.partition import Partition
    from tidegate.pipeline.content import Contents
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
    life_of: Callable[[str], Life]
    """Finds out what became of the run that holds a partition."""

    def evaluate(self, partition: Partition, now: datetime) -> Evaluation | None:
        """Look whether a partition may be committed, and keep the answer in the ledger (PC-C01).

        Returns:
            None when nothing is pending, or a person has to decide first.
        """
        state = self.ledger.partitions.find(partition)
        if state is None:
            return None
        if self.ledger.publications.unrecorded(partition) is not None:
            return Evaluation(True, None, "a commit was begun and is finished first", now)
        if state.pending == "held":
            return self._approved(partition, now)
        if state.pending == "none":
            return None
        watermark, idle = self._tide(now)
        found = evaluate(
            self.config,
            partition,
            watermark=watermark,
            first_seen=state.first_seen or now,
            now=now,
            idle=idle,
        )
        if state.why is None or replace(state.why, evaluated_at=now) != found:
            self.ledger.partitions.record_why(partition, found)
        return found

    def propose(self, partition: Partition, owner: str, now: datetime) -> Proposal | None:
        """Finish what a predecessor began, then work out and store the next revision.

        Returns:
            None when the partition's content is what stands.

        Raises:
            ClaimHeld: another run works on the partition (Transient).
        """
        claim = self._claim(partition, owner, now)
        self._finish(partition, claim, owner, now)
        claim = self._claim(partition, owner, now)
        state = self.ledger.partitions.get(partition)
        before = self.ledger.publications.proposed(partition)
        with self._renewing(partition, claim):
            drafted = self.contents.drafted(partition, state)
            while drafted.is_empty:
                if self.ledger.partitions.settle(partition, claim, drafted.contributions):
                    return None
                drafted = self.contents.drafted(partition, state)
        entry = self.ledger.publications.propose(drafted, claim, now)
        return Proposal(
            partition=partition,
            digest=entry.publication.digest,
            revision=drafted.revision,
            rows=drafted.rows,
            files_added=len(drafted.adds),
            files_removed=len(drafted.removes),
            lapsed=_lapsed(before, drafted),
        )

    def settle_unchanged(self, partition: Partition, claim: Claim) -> bool:
        """Note that nothing is pending where the contributions give what stands already."""
        drafted = self.contents.drafted(partition, self.ledger.partitions.get(partition))
        return drafted.is_empty and self.ledger.partitions.settle(
            partition, claim, drafted.contributions
        )

    def gate(self, partition: Partition, publication: str, owner: str, now: datetime) -> Verdict:
        """Check a partition as it would stand, and store the verdict; with a hold the claim ends.

        A verdict that lets the commit go on, or that a person overruled, is not worked out again.

        Raises:
            PublicationLapsed: the proposal was replaced meanwhile.
        """
        entry = self.contents.proposed(partition, publication)
        if entry.verdict is not None and _may_commit(entry):
            return entry.verdict
        claim = self._claim(partition, owner, now)
        with self._renewing(partition, claim):
            verdict, report = self.gatekeeper.judge(partition, entry, now)
        why = failed_why(verdict, now)
        held = why if verdict.outcome is Outcome.HOLD else None
        self.gatekeeper.keep(GateRecord(entry.publication, verdict, held, report))
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
        self, partition: Partition, publication: str, owner: str, now: datetime
    ) -> Committed:
        """Make a checked publication stand (design §4, commit order).

        Raises:
            PublicationLapsed: a contribution came or changed since the check: propose again.
            NotHeld: the gate held it and nobody approved.
        """
        claim = self._claim(partition, owner, now)
        try:
            if not self._finish(partition, claim, owner, now, only=publication):
                entry = self._committable(partition, publication)
                claim = self._claim(partition, owner, now)
                # What was prepared has to be finished first: a lost file is found before that.
                with self._renewing(partition, claim):
                    self._publisher(entry.publication).examine(entry.publication)
                path = self._write_commit_plan(partition, entry, owner, now)
                self.ledger.publications.prepare(partition, publication, claim)
                self._carry_out(partition, path, claim, owner, now)
        finally:
            # Where nothing was begun, or all was done before, others need not wait for its end.
            if self.ledger.publications.unrecorded(partition) is None:
                self.ledger.partitions.release(partition, claim)
        newest = self.ledger.publications.revisions(partition)[-1]
        return Committed(
            partition=partition,
            revision=newest.revision,
            rows=newest.rows,
            watermark=newest.watermark,
            windows=tuple(sorted(int(window) for window in newest.contributions)),
        )

    def _tide(self, now: datetime) -> tuple[datetime | None, bool]:
        """Give the watermark, and whether the source has been silent for too long."""
        pipeline = self.ledger.pipeline.find()
        step = pipeline.watermark_step if pipeline else None
        idle = is_idle(self.config.event_time, step.last_data_at if step else None, now)
        return pipeline.watermark if pipeline else None, idle

    def _approved(self, partition: Partition, now: datetime) -> Evaluation | None:
        """Say that a held partition may go on because a person said so, None if nobody did."""
        entry = self.ledger.publications.proposed(partition)
        if entry is None or entry.approval is None or not entry.approval.approved:
            return None
        return Evaluation(True, None, f"approved by {entry.approval.by}", now)

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
        path = layout.publication_file(
            self.roots.work, partition, entry.publication.revision, entry.publication.digest
        )
        self._carry_out(partition, path, claim, owner, now)
        return entry.publication.digest == only

    def _committable(self, partition: Partition, publication: str) -> PublicationEntry:
        entry = self.contents.proposed(partition, publication)
        if not _may_commit(entry):
            outcome = entry.verdict.outcome.value if entry.verdict else "not checked"
            raise NotHeld(
                pipeline=self.config.name,
                partition=str(partition),
                state=f"{outcome}, not approved",
            )
        return entry

    def _write_commit_plan(
        self, partition: Partition, entry: PublicationEntry, owner: str, now: datetime
    ) -> str:
        publication = entry.publication
        path = layout.publication_file(
            self.roots.work, partition, publication.revision, publication.digest
        )
        state = self.ledger.partitions.get(partition)
        pipeline = self.ledger.pipeline.find()
        watermark = pipeline.watermark if pipeline else None
        source_range = self._source_range(publication)
        verdict = entry.verdict or Verdict(Outcome.PASS, (), publication.rows, "none", now)
        facts = MarkerFacts(
            pipeline=self.config.name,
            watermark=watermark,
            partition_end=state.end,
            trigger=self.config.commit.trigger,
            source_range=source_range,
            verdict=verdict,
            approval=entry.approval,
            owner=owner,
            prepared_at=now,
        )
        plan = CommitPlan(
            pipeline=self.config.name,
            publication=publication,
            policies=tuple(_spec(policy) for policy in self.config.commit.policies),
            marker_name=self.config.commit.marker.name,
            marker=write_marker(publication, facts),
            watermark=watermark,
            source_range=source_range,
            verdict=verdict,
            approval=entry.approval,
            owner=owner,
            prepared_at=now,
        )
        self.storage.write_once(path, pretty(plan.to_json()))
        return path

    def _source_range(self, publication: Publication) -> dict[str, Any]:
        """Say which source instants are in a revision: window by window, ends included."""
        windows = [
            self.ledger.windows.get(int(sequence))
            for sequence in sorted(publication.contributions, key=int)
        ]
        return {
            str(item.window.sequence): {
                "after": item.window.range.start_exclusive.id
                if item.window.range.start_exclusive
                else None,
                "to": item.window.range.end_inclusive.id,
                "to_time": instant_text(item.window.range.end_inclusive.time),
            }
            for item in windows
        }

    def _publisher(
        self, publication: Publication, policies: Sequence[PolicySpec] = ()
    ) -> Publisher:
        places = self.roots.places(publication.partition, publication.revision)
        built = [(spec.name, _build_policy(spec)) for spec in policies]
        return Publisher(self.storage, places, built)

    def _carry_out(
        self, partition: Partition, path: str, claim: Claim, owner: str, now: datetime
    ) -> None:
        plan = self.contents.read_commit_plan(path)
        publication = plan.publication
        steps = _Steps(self.ledger, partition, publication.digest, claim)
        with self._renewing(partition, claim):
            self._publisher(publication, plan.policies).carry_out(plan, owner, steps)
        commit_plan = layout.relative_to_work(self.roots.work, path)
        self.ledger.publications.record(revision_of(plan, commit_plan, owner, now), claim)


def revision_of(plan: CommitPlan, commit_plan: str, owner: str, now: datetime) -> RevisionEntry:
    """Give the ledger's entry for a commit plan that was carried out."""
    publication = plan.publication
    return RevisionEntry(
        partition=publication.partition,
        revision=publication.revision,
        digest=publication.digest,
        contributions=publication.contributions,
        rows=publication.rows,
        files=len(publication.content),
        watermark=plan.watermark,
        source_range=plan.source_range,
        commit_plan=commit_plan,
        owner=owner,
        committed_at=now,
    )


@dataclass(frozen=True)
class _Steps:
    """Hands the publisher's progress to the ledger, under one claim."""

    ledger: Ledger
    partition: Partition
    publication: str
    claim: Claim

    def check_fence(self) -> None:
        self.ledger.partitions.check_fence(self.partition, self.claim)

    def advance(self, to: PublicationState) -> None:
        self.ledger.publications.advance(self.partition, self.publication, to, self.claim)


def _spec(policy: str | CustomPolicy) -> PolicySpec:
    if isinstance(policy, CustomPolicy):
        return PolicySpec("custom", policy.custom, policy.parameters)
    return PolicySpec(policy)


def _build_policy(spec: PolicySpec) -> CommitPolicy:
    if spec.reference is not None:
        return load_custom(spec.reference, spec.parameters)
    return BUILT_IN[spec.name]()


def _may_commit(entry: PublicationEntry) -> bool:
    if entry.approval is not None:
        return entry.approval.approved
    return entry.verdict is not None and entry.verdict.outcome in {Outcome.PASS, Outcome.WARN}


def _lapsed(before: PublicationEntry | None, drafted: Publication) -> str | None:
    """Say what changed against a proposal that somebody had already looked at (PC-C06)."""
    if before is None or before.publication.digest == drafted.digest:
        return None
    if before.verdict is None and before.approval is None:
        return None
    return f"{drafted.rows - before.rows:+d} rows since"
