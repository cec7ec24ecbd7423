"""The publish DAG of a pipeline: one run, one partition (AF-3.7–3.13)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, Param, PartitionedAssetTimetable, task

from tidegate_airflow.approval import PartitionApproval
from tidegate_airflow.assets import example_key, partition_mapper, published_asset, staged_asset
from tidegate_airflow.partition_steps import (
    APPROVE,
    COMMIT,
    GATE,
    PROPOSE,
    QUESTION,
    REPORT,
    WAIT,
    ProposeRevision,
    check_partition,
    commit_partition,
)
from tidegate_airflow.sensors import PartitionCommitSensor

if TYPE_CHECKING:
    from tidegate.config import PipelineConfig

MAX_WAITING = 200
"""Deferred runs count as active: by default, 16 waiting partitions stop all others (AF-3.27)."""

DOC = """
### {name}: publish

One run per partition. It waits until the partition is complete, checks the proposed revision, and
publishes it: data files, then the marker.

| task | does | otherwise |
|---|---|---|
| `wait_commit_policy` | waits for watermark and delay, without a slot | skips: see below |
| `propose` | computes the next revision's files, claims the partition | skips: content unchanged |
| `quality_gate` | runs the expectation suite on the whole partition | `fail` ends the run |
| `approve` | only if held: asks a person (Required Actions) | rejected or unanswered: stays held |
| `commit` | files, marker, ledger, published event | skips: new rows arrived |

**One run waits for a partition**: if nothing is pending, or another run waits for it already,
`wait_commit_policy` skips, and its log says why.

**The note of a run** has its partition and how it ended.

**Approved content is published as it was shown**; newer rows make the next revision.

**Marking a task as done publishes nothing**: each task checks its requirements itself. To publish
a partition that is not complete, name it: `tidegate publish {name} PARTITION --final -m WHY`. The
marker records this, and a held partition still waits for its approval.

**A green run does not mean published**: after a rejection, or without an answer in time, the run
ends green and the partition is `held`. `tidegate status {name}` shows this, and `tidegate approve |
reject | reopen` continue from there. If nobody is asked any more, a run that is triggered with the
partition's key, or a run that is cleared, asks again.

**Publish one partition by hand**: Trigger, Advanced, Partition Key, for example `{key}`; or set the
parameter `partition`.
"""


def publish_dag(config: PipelineConfig, poll_seconds: float, common: dict[str, Any]) -> DAG:
    """Build `<pipeline>_publish`."""
    name, key = config.name, example_key(config)
    partition = Param("", type="string", title="Partition", description=f"for a manual run: {key}")
    with DAG(
        dag_id=f"{name}_publish",
        dag_display_name=f"{name}: publish",
        schedule=PartitionedAssetTimetable(
            assets=staged_asset(name), default_partition_mapper=partition_mapper(config)
        ),
        max_active_runs=MAX_WAITING,
        # Events that arrive while the consumer is paused are lost for scheduling (AF-3.28).
        is_paused_upon_creation=False,
        params={"partition": partition},
        doc_md=DOC.format(name=name, key=key),
        **common,
    ) as dag:
        step: dict[str, Any] = {"pipeline": name, "poll_seconds": poll_seconds}
        wait = PartitionCommitSensor(
            task_id=WAIT, timeout=longest_wait(config).total_seconds(), **step
        )
        propose = ProposeRevision(task_id=PROPOSE, **step)
        gate = _gate_task(name)
        approve = PartitionApproval(
            task_id=APPROVE,
            pipeline=name,
            checked_by=GATE,
            subject=_from_gate(QUESTION),
            body=_from_gate(REPORT),
            params={"comment": _comment()},
            response_timeout=config.gate.approval.timeout if config.gate else None,
        )
        commit = _commit_task(name)
        wait >> propose >> gate >> [approve, commit]
        approve >> commit
    return dag


def _from_gate(key: str) -> str:
    return f"{{{{ ti.xcom_pull(task_ids='{GATE}', key='{key}') }}}}"


def _comment() -> Param:
    # Without "null" the buttons stay grey until somebody has typed something.
    return Param(
        None,
        type=["null", "string"],
        title="Comment (optional)",
        description="why; kept with the answer, in the ledger and in the marker",
    )


def longest_wait(config: PipelineConfig) -> timedelta:
    """Return how long a partition may wait before reconcile announces it again (AF-3.9)."""
    lateness = config.event_time.lateness if config.event_time else timedelta(0)
    return timedelta(days=40) + config.commit.delay + lateness


def _gate_task(name: str) -> Any:
    @task.branch(task_id=GATE)
    def quality_gate(**context: Any) -> str:
        return check_partition(name, context)  # type: ignore[arg-type]

    return quality_gate()


def _commit_task(name: str) -> Any:
    published = published_asset(name)

    # Runs directly after the gate, with `approve` skipped, or after an approval (AF-3.11).
    @task(task_id=COMMIT, outlets=[published], trigger_rule="none_failed_min_one_success")
    def commit(**context: Any) -> None:
        commit_partition(name, published, context)  # type: ignore[arg-type]

    return commit()
