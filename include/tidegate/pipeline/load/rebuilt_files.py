"""Leave out files that cannot have rows of the partitions of a rebuild, by their event times."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from tidegate.commit.partition_time import PartitionClock
from tidegate.plan.bounds import event_column

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self
    from zoneinfo import ZoneInfo

    from tidegate.config import PipelineConfig
    from tidegate.model.partition import Partition
    from tidegate.model.time_bounds import TimeBounds
    from tidegate.source.slicing import Units

_DAY = timedelta(days=1)


@dataclass(frozen=True)
class RebuiltTimes:
    """The spans of event time that rows of a rebuild's partitions are from."""

    spans: tuple[tuple[datetime, datetime], ...]
    """Starts and exclusive ends of partitions, as instants."""

    @classmethod
    def of(cls, config: PipelineConfig, partitions: Sequence[Partition]) -> Self | None:
        """Return the spans of partitions; None if event times do not tell all of their rows.

        They tell them if the partitions are made from the event time, and none of them is for NULL.
        """
        column, clock = event_column(config), PartitionClock.of(config)
        if column is None or {field.column for field in clock.made} != {column.name}:
            return None
        spans = []
        for start, end in map(clock.bounds, partitions):
            if start is None or end is None:
                return None
            spans.append(_widened(start, end, clock.zone))
        return cls(tuple(spans)) if spans else None

    def may_have(self, times: TimeBounds | None) -> bool:
        """Return whether a file may have rows of the partitions; a file without bounds may."""
        if times is None or times.smallest is None or times.largest is None:
            return True
        low, high = times.smallest, times.largest
        return any(start <= high and low < end for start, end in self.spans)

    def within(self, units: Units) -> Units:
        """Leave out the files of a rebuild that cannot have rows of its partitions."""
        kept = tuple(piece for piece in units.pieces if self.may_have(piece.event_times))
        ruled_out = len(units.pieces) - len(kept)
        if not ruled_out:
            return units
        files = "file" if ruled_out == 1 else "files"
        note = f"the event times of the rebuilt partitions ruled out {ruled_out} {files}"
        return replace(units, pieces=kept, notes=(*units.notes, note))


def _widened(start: datetime, end: datetime, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """Widen a span by a day at both ends if clocks change near it.

    There, wall clock times are not in the order of instants.
    """
    try:
        wide = start - _DAY, end + _DAY
        offsets = {moment.astimezone(zone).utcoffset() for moment in (*wide, start, end)}
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    return (start, end) if len(offsets) == 1 else wide
