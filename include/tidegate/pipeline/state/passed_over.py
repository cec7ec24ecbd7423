"""Tell which partitions differ from the source because a load passed over commits.

They may have rows that such commits removed, or lack rows that came with them. Pure: the windows
say in their summaries when such rows happened; a later rebuild settles it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.model.counting import counting
from tidegate.model.partition_value import time_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidegate.config import PipelineConfig
    from tidegate.model.ledger_rows import KnownPartition, PartitionState, WindowState
    from tidegate.model.partition import Partition
    from tidegate.model.time_bounds import TimeBounds


def partitions_at(
    config: PipelineConfig, times: Sequence[TimeBounds], known: Iterable[PartitionState]
) -> list[Partition]:
    """Return the partitions that may have rows of some event times, in their order.

    Args:
        config: of the pipeline.
        times: of the rows.
        known: the partitions that the ledger knows.
    """
    return [state.partition for state in known if _may_hold_any(config, times, state)]


class PassedOver:
    """The windows that passed over commits that changed rows, until what they touched is read.

    Args:
        config: of the pipeline.
        windows: all of them.
    """

    def __init__(self, config: PipelineConfig, windows: Iterable[WindowState]) -> None:
        sealed = [item for item in windows if item.sealed]
        self._config = config
        self._passing = {
            item.window.sequence: item for item in sealed if _removed(item) or _brought(item)
        }
        self._everything = max(
            (
                item.window.sequence
                for item in sealed
                if item.window.kind.replaces_everything and not item.window.is_empty
            ),
            default=0,
        )
        # Also where a rebuild found no row, which the ledger then knows nothing of.
        self._whole = {
            partition: item.window.sequence
            for item in sealed
            for partition in item.window.partitions
        }

    @property
    def is_empty(self) -> bool:
        """Whether no window passed over such a commit."""
        return not self._passing

    def of(self, known: KnownPartition) -> tuple[int, ...]:
        """Return the windows that passed over commits that may have changed rows of a partition.

        A partition that was read whole since has what the source had then.
        """
        counted, partition = counting(known.contributions), known.state.partition
        replaced = max((item.window for item in counted if item.replaces), default=0)
        begin = max(replaced, self._read_whole(partition))
        first = min((item.window for item in counted if item.rows), default=None)

        def changed(item: WindowState) -> bool:
            if partition in _brought(item):
                return True
            had_rows = first is not None and first < item.window.sequence
            if _is_of_another_time(self._config, item):
                return had_rows
            return had_rows and _may_hold_any(self._config, _removed(item), known.state)

        return tuple(
            number for number, item in self._passing.items() if number > begin and changed(item)
        )

    def unknown(self, known: Iterable[Partition]) -> dict[Partition, int]:
        """Return the partitions that lack rows and that nobody knows yet, with the window.

        Args:
            known: the partitions that the ledger knows.
        """
        others = set(known)
        return {
            partition: number
            for number, item in self._passing.items()
            for partition in _brought(item)
            if partition not in others and number > self._read_whole(partition)
        }

    def brought(self, number: int, partition: Partition) -> bool:
        """Return whether rows of a partition came with commits that a window passed over."""
        return partition in _brought(self._passing[number])

    def _read_whole(self, partition: Partition) -> int:
        """Return the last window that read all rows of a partition."""
        return max(self._everything, self._whole.get(partition, 0))


def brought_partitions(windows: Iterable[WindowState]) -> set[Partition]:
    """Return all partitions of rows that came with commits that were passed over."""
    return {partition for item in windows for partition in _brought(item)}


def _removed(item: WindowState) -> tuple[TimeBounds, ...]:
    return item.summary.removed if item.summary else ()


def _brought(item: WindowState) -> tuple[Partition, ...]:
    return (item.summary.brought if item.summary else None) or ()


def _is_of_another_time(config: PipelineConfig, item: WindowState) -> bool:
    """Return whether rows were removed whose event times are those of a former column."""
    said = config.event_time.column if config.event_time else None
    former = item.summary.removed_in if item.summary else None
    return former not in {None, said}


def _may_hold_any(
    config: PipelineConfig, times: Sequence[TimeBounds], state: PartitionState
) -> bool:
    by_time = _is_by_event_time(config)
    return any(not by_time or _may_hold(state, each) for each in times)


def _is_by_event_time(config: PipelineConfig) -> bool:
    """Return whether partitions are made from the event time; otherwise any may have any row."""
    column = config.event_time.column if config.event_time else None
    made = time_fields(config.target.partition_by, column)
    return bool(made) and made[0].column == column


def _may_hold(state: PartitionState, times: TimeBounds) -> bool:
    """Return whether rows of some event times may be in a partition, whose end is exclusive."""
    if state.start is None or state.end is None:
        return True
    if times.smallest is None or times.largest is None:
        return True
    return state.start <= times.largest and times.smallest < state.end
