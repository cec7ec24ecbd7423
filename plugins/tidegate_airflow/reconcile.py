"""The reconcile DAG of a pipeline: announce pending partitions of the ledger again (AF-3.14)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, CronTriggerTimetable, task

from tidegate_airflow.assets import mappable_keys, staged_asset
from tidegate_airflow.runs import utc_now
from tidegate_airflow.skips import skipped
from tidegate_airflow.triggers import controlled

if TYPE_CHECKING:
    from airflow.sdk import Asset, Context

    from tidegate.config import PipelineConfig

_LOG = logging.getLogger(__name__)

DOC = """
### {name}: reconcile

The ledger is the source of truth, and Airflow's events mirror it. Once an hour this DAG announces
again every partition that is pending and that no run works on: after lost events, a paused publish
DAG, or a new Airflow database. A partition that is already waiting gets a second run, which finds
nothing and skips. Partitions that are held for a decision are never announced here.
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


def announce_again(name: str, staged: Asset, context: Context) -> None:
    """Emit one event per pending partition.

    Raises:
        AirflowSkipException: nothing is pending.
    """
    pipeline = controlled(name)
    keys = mappable_keys(pipeline.config, pipeline.pending(utc_now()))
    if not keys:
        msg = "nothing is pending"
        raise skipped(msg)
    _LOG.info("announced again: %s", ", ".join(keys))
    event = context["outlet_events"][staged]
    event.add_partitions(keys)
    event.extra = {"pipeline": name, "run": context["dag_run"].run_id, "windows": []}
