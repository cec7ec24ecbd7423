"""The reconcile DAG of a pipeline: announce pending partitions of the ledger again (AF-3.14)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, CronTriggerTimetable, task

from tidegate_airflow.asking import runs_that_have_not_looked, will_look_again
from tidegate_airflow.assets import mappable_keys, staged_asset
from tidegate_airflow.naming import naming_pipeline
from tidegate_airflow.notes import keep_reason
from tidegate_airflow.partition_steps import WAIT
from tidegate_airflow.runs import utc_now
from tidegate_airflow.skips import skipped
from tidegate_airflow.triggers import controlled
from tidegate_airflow.waiting import name_run

if TYPE_CHECKING:
    from airflow.sdk import Asset, Context

    from tidegate.config import PipelineConfig
    from tidegate.model.partition import Partition
    from tidegate.pipeline import PipelineControl

_LOG = logging.getLogger(__name__)

DOC = """
### {name}: reconcile

The ledger is the source of truth, and Airflow's events mirror it. Once an hour this DAG announces
again every partition that is pending and that no run waits for or works on: after lost events, a
paused publish DAG, a run that failed, or a new Airflow database. While runs of `{name}_publish`
have not looked at their partitions yet, nothing is announced, because these may be the ones.
Partitions that are held for a decision are never announced here.

It also goes on with the calendar of `commit.expected`: an expected partition without rows is
announced or told as missing, and one that is due while counts or gate fail raises an alarm, once,
in the log and the note of the run.
"""


def reconcile_dag(config: PipelineConfig, common: dict[str, Any]) -> DAG:
    """Build `<pipeline>_reconcile`."""
    with DAG(
        dag_id=f"{config.name}_reconcile",
        dag_display_name=f"{config.name}: reconcile",
        schedule=CronTriggerTimetable("0 * * * *", timezone=config.timezone),
        max_active_runs=1,
        is_paused_upon_creation=False,
        doc_md=DOC.format(name=config.name),
        **common,
    ) as dag:
        _announce_task(config.name)
    return dag


def _announce_task(name: str) -> Any:
    staged = staged_asset(name)

    @task(task_id="announce_pending", outlets=[staged])
    def announce_pending(**context: Any) -> None:
        announce_again(name, staged, context)  # type: ignore[arg-type]

    return announce_pending()


@naming_pipeline
def announce_again(name: str, staged: Asset, context: Context) -> None:
    """Emit one event per pending partition that no run waits for (AF-3.14).

    Raises:
        AirflowSkipException: nothing is pending, or runs wait for what is, or may do so soon.
    """
    pipeline = controlled(name)
    now = utc_now()
    alarms = pipeline.review(now).alarms
    pending = pipeline.pending(now)
    if not pending:
        msg = "; ".join((*alarms, "nothing is pending"))
        raise skipped(msg)
    waiting = _waited_for(pipeline)
    for partition, run in waiting.items():
        _LOG.info("%s: %s waits for it", partition, name_run(run))
    keys = mappable_keys(pipeline.config, set(pending) - set(waiting))
    if not keys:
        msg = "; ".join((*alarms, "runs wait for all that is pending"))
        raise skipped(msg)
    if unlooked := runs_that_have_not_looked(f"{name}_publish", WAIT):
        runs = "1 run" if unlooked == 1 else f"{unlooked} runs"
        msg = (
            f"{runs} of {name}_publish did not look yet, and may be for {', '.join(keys)}; the "
            "next run of this DAG looks again"
        )
        raise skipped(msg)
    told = "; ".join((*alarms, f"announced again: {', '.join(keys)}"))
    _LOG.info("%s", told)
    keep_reason(told)
    event = context["outlet_events"][staged]
    event.add_partitions(keys)
    event.extra = {"pipeline": name, "run": context["dag_run"].run_id, "windows": []}


def _waited_for(pipeline: PipelineControl) -> dict[Partition, str]:
    """Return the partitions that a run waits for, as far as Airflow does not deny it."""
    said = {
        state.partition: state.why.waiting
        for state in pipeline.ledger.partitions.all()
        if state.pending == "pending" and state.why is not None and state.why.waiting is not None
    }
    return {item: run for item, run in said.items() if will_look_again(run) is not False}
