"""The two deferrable sensors: is there something to load, may this partition be committed (AF-4.7).

Each checks once before it defers, so that a run whose answer is known costs one short task.
Deferred runs occupy no slots, however many there are.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator

from tidegate_airflow.asking import will_look_again
from tidegate_airflow.naming import naming_pipeline
from tidegate_airflow.pools import warn_without_plugin
from tidegate_airflow.runs import (
    is_by_hand,
    load_run,
    nothing_to_do,
    publish_partition,
    run_owner,
    utc_now,
)
from tidegate_airflow.skips import skipped
from tidegate_airflow.triggers import PartitionTrigger, WindowTrigger, controlled, opened
from tidegate_airflow.waiting import (
    leave_to_asking_run,
    log_wait_for_partition,
    log_wait_for_window,
    name_run,
)

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidegate.model.partition import Partition
    from tidegate.model.watermark import Evaluation
    from tidegate.pipeline import PipelineControl

_LOG = logging.getLogger(__name__)


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
        warn_without_plugin()
        self._look(context)

    @naming_pipeline
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

    Otherwise it is deferred; the reason is in its log, in the ledger, and in `tidegate explain`. It
    skips if another run waits for the same partition.
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

    @naming_pipeline
    def _look(self, context: Context) -> None:
        now = utc_now()
        pipeline = controlled(self.pipeline)
        partition = publish_partition(context, pipeline.config)
        owner = run_owner(context)
        leave_to_asking_run(pipeline, partition, owner)
        evaluation = pipeline.evaluate(partition, now)
        if evaluation is None:
            reason = nothing_to_do(pipeline, partition)
            if not (is_by_hand(context) and pipeline.is_held(partition)):
                raise skipped(reason)
            _LOG.info("%s is held: the question is asked again", partition)
            return
        if evaluation.committable and pipeline.partition_is_free(partition, owner, now):
            self.log.info("%s may be committed: %s", partition, evaluation.detail)
            return
        if evaluation.committable:
            log_wait_for_partition(pipeline, partition)
        else:
            self._wait_alone(pipeline, partition, owner, evaluation)
        self.defer(
            trigger=PartitionTrigger(self.pipeline, owner, partition.key, self.poll_seconds),
            method_name="resume",
            timeout=timedelta(seconds=self.timeout),
        )

    def _wait_alone(
        self, pipeline: PipelineControl, partition: Partition, owner: str, found: Evaluation
    ) -> None:
        """Say in the ledger that this run waits, unless another one said so and still does.

        Each load that touches a partition starts a run for it, and one run publishes them all:
        otherwise a hundred waiting runs of a few partitions would keep those of others from
        starting (AF-3.27).
        """
        other = found.waiting
        if other is not None and other != owner and will_look_again(other):
            msg = f"{partition}: {name_run(other)} waits for it already ({found.to_line()})"
            raise skipped(msg)
        _LOG.info("%s: not yet: %s", partition, found.to_line())
        pipeline.evaluate(partition, utc_now(), waiting=owner)
