"""Ask a person about a held partition, and put the answer into the ledger (AF-3.11, PC-C06)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import AirflowSkipException

from tidegate.errors import NotHeld, PublicationLapsed
from tidegate_airflow.runs import publish_partition, utc_now
from tidegate_airflow.triggers import opened

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidegate.model.partition import Partition
    from tidegate.pipeline import Pipeline


class PartitionApproval(ApprovalOperator):
    """Waits for Approve or Reject; without an answer in time the partition stays held.

    A form field `comment`, given as `params`, is kept with the decision.

    *Runs on:* a worker, once to ask and once with the answer; in between it holds no slot.
    *Failure:* the answer is stored before the task ends; a retry asks again.
    """

    def __init__(self, *, pipeline: str, proposed_by: str, **kwargs: Any) -> None:
        super().__init__(defaults=self.REJECT, ignore_downstream_trigger_rules=True, **kwargs)
        self.pipeline = pipeline
        self.proposed_by = proposed_by

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Store who decided what on which content, then let the commit run or skip it."""
        if event.get("timedout"):
            self.log.info("no answer in time: the partition stays held")
        elif "chosen_options" in event:
            self._store(context, event)
        return super().execute_complete(context, event)

    def _store(self, context: Context, event: dict[str, Any]) -> None:
        pipeline = opened(self.pipeline)
        partition = publish_partition(context, pipeline.config)
        person = event.get("responded_by_user") or {}
        proposal = context["ti"].xcom_pull(task_ids=self.proposed_by)
        try:
            self._check_unchanged(pipeline, partition, proposal["digest"])
            pipeline.decide(
                partition,
                approved=event["chosen_options"] == [self.APPROVE],
                by=person.get("name") or "Airflow",
                comment=(event.get("params_input") or {}).get("comment", ""),
                now=utc_now(),
            )
        except (NotHeld, PublicationLapsed) as gone:
            # Decided on the command line, or replaced by a newer proposal, which has its own run.
            raise AirflowSkipException(str(gone)) from gone

    def _check_unchanged(self, pipeline: Pipeline, partition: Partition, shown: str) -> None:
        """Bind the answer to what was shown; a newer proposal has its own run and question."""
        entry = pipeline.ledger.publications.proposed(partition)
        if entry is None or entry.publication.digest != shown:
            now = entry.publication.digest if entry else "none"
            raise PublicationLapsed(
                pipeline=self.pipeline,
                partition=str(partition),
                change=f"proposal {shown} was replaced by {now}",
            )
