"""Plan and merge-read as Airflow tasks, in process or by spark-submit (AF-5.1–5.5).

The engine is the pipeline's choice (`execute.engine`). Nothing is read here, or selected for
reading.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn
from uuid import uuid4

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException

from tidegate.errors import TidegateError, WindowNotFound, WindowOpen
from tidegate_airflow.held_windows import held_windows, planned_windows
from tidegate_airflow.naming import naming_pipeline
from tidegate_airflow.runs import load_run, utc_now
from tidegate_airflow.skips import skipped
from tidegate_airflow.spark_environment import (
    JOBS,
    SPARK_CONNECTION,
    driver_environment,
    spark_binary,
    spark_connection,
)
from tidegate_airflow.triggers import WindowTrigger, opened
from tidegate_airflow.waiting import log_wait_for_window

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

    from tidegate.model.run import PlannedWindow, Run
    from tidegate.pipeline import Pipeline

PLAN_ON_SPARK_FILES = 50_000
"""New files in a run's commits from which `engine: spark` plans in its own driver (AF-5.9)."""


class PipelineJob(SparkSubmitOperator):
    """One file of `jobs/`, submitted to the connection `spark_default` for one pipeline.

    Failure: the driver ends when this task's process ends (AF-5.5); staged files stay, and the next
    attempt continues from there. A typed error of the driver is raised here as itself (AF-4.16).
    """

    def __init__(self, *, pipeline: str, job: str, poll_seconds: float, **kwargs: Any) -> None:
        super().__init__(
            application=str(JOBS / job),
            conn_id=SPARK_CONNECTION,
            conf={"spark.ui.showConsoleProgress": "false", "spark.log.level": "WARN"},
            **kwargs,
        )
        self.pipeline = pipeline
        self.poll_seconds = poll_seconds

    def submit(self, context: Context, request: dict[str, Any], place: str) -> None:
        """Run the job with a request and wait for it.

        Args:
            context: the context of the task.
            request: the arguments of the job's step, JSON-ready.
            place: directory in the work directory to which the job writes its error.
        """
        connection = spark_connection()
        instance = context["ti"]
        # One attempt of a task may submit several times, each with its own error.
        report = f"{place}/errors/{self.task_id}-{uuid4().hex}.json"
        self.name = f"{instance.dag_id}.{instance.task_id}"
        self.env_vars = driver_environment(connection, opened(self.pipeline).config)
        self._spark_binary = self._spark_binary or spark_binary(connection)
        self.application_args = [
            "--pipeline",
            self.pipeline,
            "--request",
            json.dumps(request),
            "--report",
            report,
        ]
        try:
            super().execute(context)
        except AirflowException as failed:
            storage = opened(self.pipeline).storage
            if storage.exists(report):
                raise TidegateError.from_json(json.loads(storage.read_bytes(report))) from failed
            raise

    def wait_for(self, held: WindowOpen, run: Run) -> NoReturn:
        """Defer the task until no other run works on the window."""
        log_wait_for_window(opened(self.pipeline), held.sequence)
        self.defer(
            trigger=WindowTrigger(self.pipeline, run.owner, held.sequence, self.poll_seconds),
            method_name="resume",
            timeout=timedelta(days=7),
        )


class PlanSplits(PipelineJob):
    """Takes the run's window and plans it; skips if there is nothing to load.

    While another run works on the window the task is deferred, and uses no retry.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(job="plan_splits.py", **kwargs)

    def execute(self, context: Context) -> list[dict[str, Any]]:  # type: ignore[override]
        """Return the names of the plans."""
        return self._plan(context)

    def resume(self, context: Context, **_fired: Any) -> list[dict[str, Any]]:
        """Try again, after the Airflow trigger fired."""
        return self._plan(context)

    @naming_pipeline
    def _plan(self, context: Context) -> list[dict[str, Any]]:
        now = utc_now()
        run = load_run(context, now)
        pipeline = opened(self.pipeline)
        try:
            if plans_on_spark(pipeline, run, now):
                self._plan_on_spark(context, pipeline, run, now)
            planned = pipeline.plan(run, now)
        except WindowOpen as held:
            self.wait_for(held, run)
        if not planned:
            msg = "nothing to load: the window was taken by another run since the sensor looked"
            raise skipped(msg)
        for item in planned:
            self.log.info(
                "window %d: %d of %d splits to read, plan %s",
                item.sequence,
                item.pending,
                item.splits,
                item.uri,
            )
        return [item.to_json() for item in planned]

    def _plan_on_spark(self, context: Context, pipeline: Pipeline, run: Run, now: datetime) -> None:
        """Plan in a driver, which cannot ask Airflow whether a run that holds a window has ended.

        Therefore this task asks, and takes the window for its run if the driver may not.
        """
        request = {"run": run.to_json()}
        while True:
            try:
                return self.submit(context, request, pipeline.roots.work)
            except WindowOpen as held:
                # A window dropped in the meantime belongs to nobody: the next driver plans anew.
                with suppress(WindowNotFound):
                    pipeline.take_over(held.sequence, run, now)


class MergeRead(PipelineJob):
    """Reads and stages the unfinished splits of the plans, with the engine of each plan.

    A run that was cleared after it had failed plans again what it gave back, and is deferred while
    another run works on it.
    """

    def __init__(self, *, plans_from: str, **kwargs: Any) -> None:
        super().__init__(job="merge_read.py", **kwargs)
        self.plans_from = plans_from

    def execute(self, context: Context) -> list[dict[str, Any]]:  # type: ignore[override]
        """Stage every planned window, and return the names of the plans.

        Nothing is started for plans that are already done.
        """
        return self._read(context)

    def resume(self, context: Context, **_fired: Any) -> list[dict[str, Any]]:
        """Try again, after the Airflow trigger fired."""
        return self._read(context)

    @naming_pipeline
    def _read(self, context: Context) -> list[dict[str, Any]]:
        now = utc_now()
        run = load_run(context, now)
        pipeline = opened(self.pipeline)
        try:
            planned = held_windows(pipeline, planned_windows(context, self.plans_from), run, now)
        except WindowOpen as held:
            self.wait_for(held, run)
        engine = pipeline.engine_for(planned)
        self.log.info(
            "%d splits to read, engine: %s", sum(item.pending for item in planned), engine
        )
        if engine == "local":
            self._stage_here(pipeline, planned)
        elif engine == "spark":
            request = {"planned": [item.to_json() for item in planned]}
            # The driver renews, too, but may first wait for its turn in a cluster.
            with pipeline.renewing(planned, on_loss=self.on_kill):
                self.submit(context, request, planned[0].uri)
        return [item.to_json() for item in planned]

    def _stage_here(self, pipeline: Pipeline, planned: Sequence[PlannedWindow]) -> None:
        from tidegate.execute.local import LocalExecutor

        with LocalExecutor(pipeline.config.execute.workers) as executor:
            for item in planned:
                pipeline.stage(item, executor, beside=planned)


def plans_on_spark(pipeline: Pipeline, run: Run, now: datetime) -> bool:
    """Return whether planning is too much for a worker's process, from the commits' summaries."""
    state = pipeline.ledger.pipeline.find()
    if pipeline.config.execute.engine != "spark" or state is None:
        return False
    pin = pipeline.source.timeline.pin(
        now, state.source_identity, run.end_exclusive, state.checkpoint
    )
    instants = pipeline.source.timeline.instants(pin, state.checkpoint) if pin.head else ()
    end = run.end_exclusive
    taken = [item for item in instants if end is None or item.time < end]
    reports = pipeline.source.timeline.describe(pin, taken)
    return sum(report.files_added or 0 for report in reports) >= PLAN_ON_SPARK_FILES
