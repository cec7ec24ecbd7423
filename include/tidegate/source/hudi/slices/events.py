"""The partitions that the writes of a window overwrote or dropped, as the timeline tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.model.plan_record import PartitionEvent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidegate.source.hudi.timeline.loaded import LoadedTimeline, Order


def partition_events(
    timeline: LoadedTimeline, window: Iterable[Order]
) -> tuple[PartitionEvent, ...] | None:
    """Return what `INSERT OVERWRITE` and `delete_partition` replaced (HUDI-R10); None for nothing.

    Args:
        timeline: one listing.
        window: the writes, in the order of completion; events have the same order, then that of
            the partitions' names.
    """
    return tuple(_events(timeline, window)) or None


def _events(timeline: LoadedTimeline, window: Iterable[Order]) -> Iterator[PartitionEvent]:
    for _, requested in window:
        metadata = timeline.metadata_of(requested)
        for partition, groups in sorted(metadata.replaced.items()):
            yield PartitionEvent(
                instant=requested,
                operation=metadata.operation.lower(),
                partition=partition,
                replaced=tuple(sorted(groups)),
            )
