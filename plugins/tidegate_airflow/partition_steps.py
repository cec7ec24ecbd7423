"""The tasks of a publish run: propose, gate, commit (AF-3.8–3.12)."""

from __future__ import annotations

import logging
import textwrap
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from tidegate.errors import ClaimHeld, GateFailed, PublicationLapsed
from tidegate.model.publication import Outcome
from tidegate_airflow.approval import SHOWN
from tidegate_airflow.asking import is_announced
from tidegate_airflow.naming import naming_pipeline
from tidegate_airflow.notes import keep_reason
from tidegate_airflow.runs import (
    is_by_hand,
    nothing_to_do,
    proposal_of,
    publish_partition,
    run_owner,
    utc_now,
)
from tidegate_airflow.skips import skipped
from tidegate_airflow.triggers import PartitionTrigger, opened
from tidegate_airflow.waiting import leave_to_asking_run, log_wait_for_partition

if TYPE_CHECKING:
    from airflow.sdk import Asset, Context

    from tidegate.model.ledger_rows import RevisionEntry
    from tidegate.model.publication import Verdict
    from tidegate.model.run import Committed, Proposal
    from tidegate.pipeline import Pipeline

_LOG = logging.getLogger(__name__)

WAIT = "wait_commit_policy"
PROPOSE = "propose"
GATE = "quality_gate"
APPROVE = "approve"
COMMIT = "commit"

REPORT, QUESTION = "report", "question"
"""XCom keys of what the gate found, in full and in one line."""

_WORDS = 120
"""Characters of a failed check in the line that asks a person."""


class ProposeRevision(BaseOperator):
    """Computes the partition's next revision and claims the partition for this run.

    Skips if the content would not change. If an earlier run died inside its commit, it finishes
    that commit and hands it on, so that its consumers are notified; newer rows stay pending, and
    are announced again by the reconcile DAG. While another run has the partition the task is
    deferred, and uses no retry. It evaluates the partition's trigger itself, and fails if the
    partition is not committable: a `wait_commit_policy` that was marked as done did not wait, and
    whoever marked it has to see that it had no effect.
    """

    def __init__(self, *, pipeline: str, poll_seconds: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline
        self.poll_seconds = poll_seconds

    def execute(self, context: Context) -> dict[str, Any]:
        """Return the proposal's name."""
        return self._propose(context)

    def resume(self, context: Context, **_fired: Any) -> dict[str, Any]:
        """Try again, after the Airflow trigger fired."""
        return self._propose(context)

    @naming_pipeline
    def _propose(self, context: Context) -> dict[str, Any]:
        pipeline = opened(self.pipeline)
        partition = publish_partition(context, pipeline.config)
        owner = run_owner(context)
        now = utc_now()
        leave_to_asking_run(pipeline, partition, owner)
        # Another run may have published or held it in the meantime.
        if pipeline.evaluate(partition, now) is None:
            held = pipeline.held(partition) if is_by_hand(context) else None
            if held is None:
                raise skipped(nothing_to_do(pipeline, partition))
            self.log.info("held, the question is asked again: %s", held.to_text())
            return held.to_json()
        try:
            proposal = pipeline.propose(partition, owner, now)
        except ClaimHeld:
            log_wait_for_partition(pipeline, partition)
            self.defer(
                trigger=PartitionTrigger(self.pipeline, owner, partition.key, self.poll_seconds),
                method_name="resume",
                timeout=timedelta(days=7),
            )
        if proposal is None:
            msg = f"{partition}: its content is what stands already"
            raise skipped(msg)
        self.log.info("proposed: %s", proposal.to_text())
        return proposal.to_json()


@naming_pipeline
def check_partition(name: str, context: Context) -> str:
    """Judge the proposed revision and return the task that comes next (AF-3.10).

    Raises:
        GateFailed: a critical check failed and the pipeline is configured to fail (Terminal).
        AirflowSkipException: new rows arrived in the meantime; the run that they started continues.
    """
    pipeline = opened(name)
    proposal = proposal_of(context, PROPOSE)
    try:
        verdict = pipeline.gate(
            proposal.partition, proposal.digest, run_owner(context), utc_now(), asks=True
        )
    except PublicationLapsed as lapsed:
        raise skipped(str(lapsed)) from lapsed
    report = describe_verdict(proposal, verdict)
    _LOG.info("%s", report)
    if verdict.outcome is Outcome.FAIL:
        raise GateFailed(
            pipeline=name, partition=str(proposal.partition), failures=verdict.critical_text
        )
    if verdict.outcome is Outcome.HOLD:
        stored = pipeline.ledger.publications.find(proposal.partition, proposal.digest)
        if stored is not None and stored.is_approved:
            # Approved on the command line, or in the run that asked first: nobody is asked twice.
            return COMMIT
        keep_reason(f"held, {verdict.critical_text}")
        context["ti"].xcom_push(key=REPORT, value=report)
        context["ti"].xcom_push(key=QUESTION, value=question(name, proposal, verdict))
        context["ti"].xcom_push(key=SHOWN, value=proposal.digest)
        return APPROVE
    return COMMIT


@naming_pipeline
def commit_partition(name: str, published: Asset, context: Context) -> None:
    """Publish the checked revision, and notify consumers of the published asset (AF-3.12).

    Raises:
        AirflowSkipException: new rows arrived since the check, and the run that they started
            continues; or the revision was announced before this task was cleared.
    """
    pipeline = opened(name)
    proposal = proposal_of(context, PROPOSE)
    try:
        done = pipeline.commit(proposal.partition, proposal.digest, run_owner(context), utc_now())
    except PublicationLapsed as lapsed:
        raise skipped(str(lapsed)) from lapsed
    _LOG.info("committed: %s", done.to_text())
    keep_reason(f"revision {done.revision} is published, {done.rows} rows")
    made, rows_before = _revision(pipeline, done)
    if is_announced(published, made):
        msg = f"revision {done.revision} was published and announced before: no event again"
        raise skipped(msg)
    event = context["outlet_events"][published]
    event.add_partitions(proposal.partition.key)
    event.extra = made.event(name, rows_before)


def _revision(pipeline: Pipeline, done: Committed) -> tuple[RevisionEntry, int]:
    """Return a revision that was committed, and the rows of the one before."""
    made = {item.revision: item for item in pipeline.ledger.publications.revisions(done.partition)}
    before = made.get(done.revision - 1)
    return made[done.revision], before.rows if before is not None else 0


def question(name: str, proposal: Proposal, verdict: Verdict) -> str:
    """Return the line under which a person finds the question among others."""
    failed = verdict.failures
    first = textwrap.shorten(failed[0].text, _WORDS, placeholder=" …") if failed else "the gate"
    others = f" and {len(failed) - 1} more" if failed[1:] else ""
    # Airflow's list shows about 45 characters, and the DAG in a column of its own.
    return (
        f"{proposal.partition}, {proposal.rows} rows: {first}{others}. "
        f"Publish revision {proposal.revision} of {name} nevertheless?"
    )


def describe_verdict(proposal: Proposal, verdict: Verdict) -> str:
    """Describe for a person what would be committed and which checks failed (Markdown)."""
    what = f"**{proposal.partition}**, revision {proposal.revision}, {proposal.rows} rows"
    lines = [f"{what}: {verdict.outcome.value}"]
    lines += [f"- {check.severity}: {check.text}" for check in verdict.failures]
    if proposal.lapsed:
        lines.append(f"- changed since it was last looked at: {proposal.lapsed}")
    if verdict.outcome is Outcome.HOLD:
        lines.append(
            f"\nProposal {proposal.digest}; an answer counts for this content only. Both buttons "
            "can be pressed: Reject is coloured because it is what counts without an answer."
        )
    return "\n".join(lines)
