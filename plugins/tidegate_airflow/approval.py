"""Ask a person about a held partition, and record the answer in the ledger (AF-3.11, PC-C06)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator

from tidegate.errors import DecisionRefused, NotHeld, ProposalMissing, PublicationLapsed
from tidegate_airflow.naming import naming_pipeline
from tidegate_airflow.notes import keep_reason
from tidegate_airflow.runs import publish_partition, utc_now
from tidegate_airflow.skips import skipped
from tidegate_airflow.triggers import controlled

if TYPE_CHECKING:
    from airflow.sdk import Context

SHOWN = "shown"
"""XCom key of the digest of the publication that a question shows."""


class PartitionApproval(ApprovalOperator):
    """Waits for Approve or Reject; without an answer in time the partition stays held.

    A form field `comment`, passed in `params`, is kept with the decision.

    *Runs on:* a worker, once to ask and once with the answer; in between it occupies no slot.
    *Failure:* the answer is stored before the task ends; a retry asks again.
    """

    def __init__(self, *, pipeline: str, checked_by: str, **kwargs: Any) -> None:
        super().__init__(defaults=self.REJECT, ignore_downstream_trigger_rules=True, **kwargs)
        self.pipeline = pipeline
        self.checked_by = checked_by

    def execute(self, context: Context) -> Any:
        """Ask, and keep the publication that the question is about."""
        self.keep_shown(context)
        return super().execute(context)

    def keep_shown(self, context: Context) -> None:
        """Record the publication that the question shows.

        The tasks before this one may be cleared while it waits, and then work on another one.

        Raises:
            ProposalMissing: the gate did not hold any; somebody marked it as done.
        """
        shown = context["ti"].xcom_pull(task_ids=self.checked_by, key=SHOWN)
        if shown is None:
            raise ProposalMissing(dag=context["dag_run"].dag_id, task=self.checked_by)
        context["ti"].xcom_push(key=SHOWN, value=shown)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Store the decision with its author and content, then let the commit run or skip it."""
        if event.get("timedout"):
            self.log.info("no answer in time: the partition stays held")
            keep_reason("nobody answered in time: the partition stays held")
        elif "chosen_options" in event:
            self._store(context, event)
        return super().execute_complete(context, event)

    @naming_pipeline
    def _store(self, context: Context, event: dict[str, Any]) -> None:
        pipeline = controlled(self.pipeline)
        partition = publish_partition(context, pipeline.config)
        person = (event.get("responded_by_user") or {}).get("name") or "Airflow"
        approved = event["chosen_options"] == [self.APPROVE]
        try:
            pipeline.decide(
                partition,
                # A newer proposal has its own run and question.
                publication=context["ti"].xcom_pull(task_ids=self.task_id, key=SHOWN),
                approved=approved,
                by=person,
                comment=(event.get("params_input") or {}).get("comment") or "",
                now=utc_now(),
            )
            if not approved:
                keep_reason(f"rejected by {person}: it stays held")
        except (DecisionRefused, NotHeld, PublicationLapsed) as gone:
            # It was decided on the command line, or replaced by a newer proposal with its own run.
            raise skipped(str(gone)) from gone
