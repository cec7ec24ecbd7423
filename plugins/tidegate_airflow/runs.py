"""Read Airflow's context: the run, its data interval, its partition. Reads the clock."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tidegate.errors import IntervalInvalid, PartitionUnnamed, ProposalMissing
from tidegate.errors.commands import command
from tidegate.model.instant import DataInterval
from tidegate.model.run import Proposal, Run
from tidegate.target.partitioning import Partitioning
from tidegate_airflow.assets import read_partition

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidegate.config import PipelineConfig
    from tidegate.model.partition import Partition
    from tidegate.pipeline import PipelineControl


_OWNER = "airflow:"


def utc_now() -> datetime:
    """Return the current time: read once per task, or per poll of an Airflow trigger."""
    return datetime.now(UTC)


def run_owner(context: Context) -> str:
    """Return the run's name as a holder of windows and claims, the same for a retry (AF-3.32)."""
    run = context["dag_run"]
    return f"{_OWNER}{run.dag_id}/{run.run_id}"


def read_owner(owner: str) -> tuple[str, str] | None:
    """Return the DAG id and run id in a holder's name; None if it is not the name of a run."""
    if not owner.startswith(_OWNER):
        return None
    dag_id, _, run_id = owner.removeprefix(_OWNER).partition("/")
    return dag_id, run_id


def load_run(context: Context, now: datetime) -> Run:
    """Return the run of a load DAG with its data interval; a manual run may have none (AF-3.20).

    Raises:
        IntervalInvalid: the interval is empty or has not ended yet.
    """
    run = context["dag_run"]
    interval = None
    if run.data_interval_start is not None and run.data_interval_end is not None:
        interval = DataInterval(run.data_interval_start, run.data_interval_end)
        check_interval(interval, now, subject=f"{run.dag_id} {run.run_id}")
    return Run(id=run.run_id, owner=run_owner(context), interval=interval)


def check_interval(interval: DataInterval, now: datetime, subject: str) -> None:
    """Check that an interval can be loaded once, completely (AF-3.2).

    Raises:
        IntervalInvalid: it is empty, reversed, or ends in the future.
    """
    text = f"[{interval.start.isoformat()}, {interval.end.isoformat()})"
    if interval.start >= interval.end:
        raise IntervalInvalid(subject=subject, interval=text, problem="it holds no moment")
    if interval.end > now:
        raise IntervalInvalid(
            subject=subject, interval=text, problem=f"it is not over at {now:%Y-%m-%d %H:%M:%S}Z"
        )


def publish_partition(context: Context, config: PipelineConfig) -> Partition:
    """Return a publish run's partition: the event's key, or a manual run's parameter (AF-2.12).

    Raises:
        PartitionUnnamed: neither names one.
    """
    text = context.get("partition_key") or context["params"].get("partition")
    if not text:
        expected = Partitioning.of(config.target).spelling
        raise PartitionUnnamed(dag=f"{config.name}_publish", expected=expected)
    return read_partition(config, text)


def proposal_of(context: Context, task_id: str) -> Proposal:
    """Return the proposal of the task that proposes.

    Raises:
        ProposalMissing: there is none, because somebody marked the task as done.
    """
    handed = context["ti"].xcom_pull(task_ids=task_id)
    if handed is None:
        raise ProposalMissing(dag=context["dag_run"].dag_id, task=task_id)
    return Proposal.from_json(handed)


def is_by_hand(context: Context) -> bool:
    """Return whether a person started this run, or cleared it."""
    run = context["dag_run"]
    return run.run_type == "manual" or bool(run.clear_number)


def nothing_to_do(pipeline: PipelineControl, partition: Partition) -> str:
    """Return why a publish run has nothing to do.

    Raises:
        PartitionNotFound: no window ever touched the partition.
    """
    found = pipeline.ledger.partitions.get(partition)
    if found.pending == "held":
        told = found.why.detail if found.why else "its checks failed"
        shown = pipeline.ledger.publications.proposed(partition)
        if shown is not None and shown.approval is not None:
            reopen = command("reopen", pipeline.config.name, partition)
            return (
                f"{partition} stays held: {told}. `{reopen}` checks it again; a run that is "
                "triggered with its key, or cleared, asks again"
            )
        return (
            f"{partition} is held: {told}. It waits for a decision, under Required Actions or by "
            f"`{command('approve', pipeline.config.name, partition)}`. If nobody is asked any "
            "more, trigger this DAG with its key, or clear the run: the question is asked again"
        )
    standing = f"revision {found.revision} is published" if found.revision else "it has no rows"
    return f"{partition}: nothing is pending: {standing}"
