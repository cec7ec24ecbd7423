"""Tell which partitions may have rows that the source removed by commits that a load passed over.

Pure: the windows say in their summaries when such rows happened; a later rebuild settles it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.model.counting import counting
from tidegate.model.partition_value import time_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidegate.config import PipelineConfig
    from tidegate.model.ledger_rows import KnownPartition, PartitionState, WindowState
    from tidegate.model.time_bounds import TimeBounds


def is_by_event_time(config: PipelineConfig) -> bool:
    """Return whether partitions are made from the event time; otherwise any may have any row."""
    column = config.event_time.column if config.event_time else None
    made = time_fields(config.target.partition_by, column)
    return bool(made) and made[0].column == column


def may_hold(state: PartitionState, times: TimeBounds) -> bool:
    """Return whether rows of some event times may be in a partition, whose end is exclusive."""
    if state.start is None or state.end is None:
        return True
    if times.smallest is None or times.largest is None:
        return True
    return state.start <= times.largest and times.smallest < state.end


def removing(windows: Iterable[WindowState]) -> tuple[WindowState, ...]:
    """Return the windows that passed over commits that removed rows of earlier ones."""
    return tuple(item for item in windows if item.sealed and item.summary and item.summary.removed)


def passed_over(
    config: PipelineConfig, windows: Iterable[WindowState], known: KnownPartition
) -> tuple[int, ...]:
    """Return the windows that passed over commits that may have removed rows of a partition.

    A partition that was read whole since has what the source had then.

    Args:
        config: of the pipeline.
        windows: see `removing`.
        known: the partition.
    """
    counted = counting(known.contributions)
    begin = max((item.window for item in counted if item.kind.replaces), default=0)
    return tuple(
        state.window.sequence
        for state in windows
        if state.summary is not None
        and state.window.sequence > begin
        and _took(config, state.summary.removed, known.state)
        and any(item.rows and item.window < state.window.sequence for item in counted)
    )


def _took(config: PipelineConfig, removed: Sequence[TimeBounds], state: PartitionState) -> bool:
    by_time = is_by_event_time(config)
    return any(not by_time or may_hold(state, times) for times in removed)
