"""The two deferrable sensors: is there something to load, may this partition be committed (AF-4.7).

Each checks once before it defers, so that a run whose answer is known costs one short task.
Deferred runs occupy no slots, however many there are.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator

from tidegate_airflow.runs import (
    load_run,
    nothing_pending,
    publish_partition,
    run_owner,
    utc_now,
)
from tidegate_airflow.skips import skipped
from tidegate_airflow.triggers import PartitionTrigger, WindowTrigger, controlled, opened
from tidegate_airflow.waiting import log_wait_for_partition, log_wait_for_window

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidegate.model.watermark import Evaluation


class ChangesSensor(BaseSensorOperator):
    """Succeeds if the run has a window to load or replay, skips if there is none (AF-3.3).

    Reads only metadata of the source. While another run works on the pipeline's open window it is
    deferred: windows are loaded one after the other.
    """

    ui_color = "#dbeaf7"

    def __init__(self, *, pipeline: str, poll_seconds: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline
        self.poll_seconds = poll_seconds

    def resume(self, context: Context, **_fired: Any) -> None:
        """Check again, after the Airflow trigger fired."""
        self._look(context)

    def execute(self, context: Context) -> None:
        """Check the source."""
        self._look(context)

    def _look(self, context: Context) -> None:
        now = utc_now()
        run = load_run(context, now)
        pipeline = opened(self.pipeline)
        held = pipeline.ledger.windows.open()
        sequence = held.window.sequence if held is not None else 0
        if held is not None and not pipeline.window_is_free(sequence, run.owner, now):
            log_wait_for_window(pipeline, sequence)
            self.defer(
                trigger=WindowTrigger(self.pipeline, run.owner, sequence, self.poll_seconds),
                method_name="resume",
                timeout=timedelta(seconds=self.timeout),
            )
        look = pipeline.look(run, now)
        self.log.info("%s: %s", look.kind, look.detail)
        if look.kind == "none":
            msg = f"nothing to load: {look.detail}"
            raise skipped(msg)


class PartitionCommitSensor(BaseSensorOperator):
    """Succeeds if the run's partition may be committed, skips if nothing is pending (AF-3.9).

    Otherwise it is deferred; the reason is in its log, in the ledger, and in `tidegate explain`.
    """

    ui_color = "#dbeaf7"

    def __init__(self, *, pipeline: str, poll_seconds: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline
        self.poll_seconds = poll_seconds

    def resume(self, context: Context, **_fired: Any) -> None:
        """Check again, after the Airflow trigger fired."""
        self._look(context)

    def execute(self, context: Context) -> None:
        """Check the ledger."""
        self._look(context)

    def _look(self, context: Context) -> None:
        now = utc_now()
        pipeline = controlled(self.pipeline)
        partition = publish_partition(context, pipeline.config)
        owner = run_owner(context)
        evaluation = pipeline.evaluate(partition, now)
        if evaluation is None:
            raise skipped(nothing_pending(partition))
        if evaluation.committable and pipeline.partition_is_free(partition, owner, now):
            self.log.info("%s may be committed: %s", partition, evaluation.detail)
            return
        if evaluation.committable:
            log_wait_for_partition(pipeline, partition)
        else:
            self.log.info("%s: not yet: %s", partition, _why(evaluation))
        self.defer(
            trigger=PartitionTrigger(self.pipeline, owner, partition.key, self.poll_seconds),
            method_name="resume",
            timeout=timedelta(seconds=self.timeout),
        )


def _why(evaluation: Evaluation) -> str:
    reason = f"{evaluation.reason.value}: " if evaluation.reason else ""
    return f"{reason}{evaluation.detail}"
