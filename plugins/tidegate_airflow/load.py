"""The load DAG of a pipeline: one run, one window of source commits (AF-3.1–3.6)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, CronDataIntervalTimetable, task

from tidegate_airflow.assets import mappable_keys, staged_asset
from tidegate_airflow.held_windows import held_windows, planned_windows
from tidegate_airflow.naming import naming_pipeline
from tidegate_airflow.notes import keep_reason
from tidegate_airflow.operators import MergeRead, PlanSplits
from tidegate_airflow.pools import SPARK_POOL
from tidegate_airflow.runs import load_run, utc_now
from tidegate_airflow.sensors import ChangesSensor
from tidegate_airflow.skips import skipped
from tidegate_airflow.triggers import opened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Asset, Context

    from tidegate.config import PipelineConfig
    from tidegate.execute import Executor
    from tidegate.model.partition import Partition
    from tidegate.model.run import Announced, PlannedWindow
    from tidegate.pipeline import Pipeline

_LOG = logging.getLogger(__name__)

DOC = """
### {name}: load

Takes the source's next commits as one window, merge-reads them in Spark, and stages the rows
beside the table, where no reader sees them. Then it announces the partitions that were touched.

| task | does | leaves behind |
|---|---|---|
| `wait_for_changes` | reads the source's metadata; skips the run if there is nothing | – |
| `plan_splits` | takes the window, plans its splits | `plan.json`, `splits.jsonl` |
| `merge_read` | reads the splits, stages part files; no JVM for small ones | part files, messages |
| `announce` | seals the window; moves checkpoint and watermark | ledger, an event per partition |

**A retry, a clear, a backfill** of the same days result in the same rows: a sealed window is
replayed, and nothing is written if nothing changed. A run waits while another run works on an open
window; its log names that run.

**A run that fails gives its window back**: the next run finishes it, and then loads its own. Once
the cause is mended, nothing needs to be cleared; a cleared run goes on with its window, or finds it
finished.

**Backfill** from this page (Trigger, Backfill). The partitions follow in `{name}_publish`
automatically.
"""


def load_dag(config: PipelineConfig, poll_seconds: float, common: dict[str, Any]) -> DAG:
    """Build `<pipeline>_load`."""
    schedule = config.dag.schedule
    with DAG(
        dag_id=f"{config.name}_load",
        dag_display_name=f"{config.name}: load",
        # A plain cron string would result in intervals of length zero (AF-3.2).
        schedule=CronDataIntervalTimetable(schedule, timezone=config.timezone)
        if schedule
        else None,
        max_active_runs=1,
        doc_md=DOC.format(name=config.name),
        **common,
    ) as dag:
        step: dict[str, Any] = {"pipeline": config.name, "poll_seconds": poll_seconds}
        wait = ChangesSensor(task_id="wait_for_changes", **step)
        plan = PlanSplits(task_id="plan_splits", pool=SPARK_POOL, **step)
        read = MergeRead(task_id="merge_read", pool=SPARK_POOL, plans_from=plan.task_id, **step)
        # The reading task hands on what it planned again, if the run had lost its window.
        wait >> plan >> read >> _announce_task(config.name, read.task_id, plan.task_id)
    return dag


def _announce_task(name: str, *plans_from: str) -> Any:
    staged = staged_asset(name)

    # Also runs after skipped tasks: an idle source may still move the watermark (AF-3.4).
    @task(task_id="announce", outlets=[staged], trigger_rule="none_failed")
    def announce(**context: Any) -> None:
        planned = planned_windows(context, *plans_from)  # type: ignore[arg-type]
        announce_window(name, planned, staged, context)  # type: ignore[arg-type]

    return announce()


@naming_pipeline
def announce_window(
    name: str, planned: Sequence[PlannedWindow], staged: Asset, context: Context
) -> None:
    """Seal what was staged, and emit one event per partition whose content changed (AF-3.5).

    Raises:
        AirflowSkipException: no partition was touched. Otherwise an event without a key would be
            emitted, which nobody can use.
    """
    now = utc_now()
    pipeline = opened(name)
    run = load_run(context, now)
    planned = held_windows(pipeline, planned, run, now)
    announced = pipeline.announce(planned, now)
    if any(item.taken_over for item in planned):
        # The tasks before this one finished the window of a run that has ended; this run's own
        # window is loaded here, in process, because that is rare.
        announced = announced.joined(pipeline.load(run, now, _in_process))
    _LOG.info(
        "windows %s, watermark %s, %s",
        list(announced.windows) or "none",
        announced.watermark,
        announced.summary.to_text(),
    )
    if announced.windows:
        keep_reason(_told(announced, [item.sequence for item in planned if item.sealed]))
    keys = mappable_keys(pipeline.config, _touched(pipeline, announced, planned))
    if not keys:
        msg = "no partition was touched"
        raise skipped(msg, noted=False)
    event = context["outlet_events"][staged]
    event.add_partitions(keys)
    event.extra = {"pipeline": name, "run": run.id, "windows": list(announced.windows)}


def _told(announced: Announced, unchanged: Sequence[int]) -> str:
    """Return what became of each window, for the run's note."""
    read = [window for window in announced.windows if window not in unchanged]
    summary = announced.summary
    rows = f"{summary.rows_read} rows read, {summary.rows_kept} kept"
    told = [f"windows {read}: {rows}"] if read else []
    told += [f"windows {[*unchanged]}: already taken in, same plan"] if unchanged else []
    return "; ".join(told)


def _in_process(_engine: str) -> Executor:
    from tidegate.execute.local import LocalExecutor

    return LocalExecutor()


def _touched(
    pipeline: Pipeline, announced: Announced, planned: Sequence[PlannedWindow]
) -> set[Partition]:
    # A predecessor that died between the ledger and Airflow sealed the window without an event:
    # nothing changes now, but its partitions are still announced.
    fresh = [item.sequence for item in planned if not item.sealed]
    sealed = {
        item.partition
        for number in fresh
        for item in pipeline.ledger.contributions.of_window(number)
    }
    # A calendar expects them, and their runs publish a marker without files.
    return sealed | set(announced.partitions) | set(announced.expected or ())
