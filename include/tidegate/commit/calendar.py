"""List the partitions that a calendar expects and whose turn has come (PC-C04). Asks no ledger."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tidegate.commit.partition_time import NoPartitionTime, PartitionClock, add, interval_end
from tidegate.config.expected_values import ExpectedValues
from tidegate.model.expected import DuePartition
from tidegate.model.partition import Partition
from tidegate.model.partition_value import Interval
from tidegate.model.wire import digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import timedelta

    from tidegate.config import PipelineConfig
    from tidegate.config.completeness import ExpectedConfig


@dataclass(frozen=True)
class Calendar:
    """The expected partitions of one pipeline, interval by interval."""

    said: ExpectedConfig
    written: ExpectedValues
    clock: PartitionClock
    delay: timedelta
    names: tuple[str, ...]
    """The partition keys in the order of the path."""
    fixed: tuple[Mapping[str, str], ...] = field(default=())
    """The combinations of values of keys that are no times."""

    @classmethod
    def of(cls, config: PipelineConfig) -> Calendar | None:
        """Build the calendar of a pipeline file; None if it has none."""
        said = config.commit.expected
        if said is None:
            return None
        fields = config.target.partition_by
        column = config.event_time.column if config.event_time else None
        combined = itertools.product(*said.values.values())
        return cls(
            said,
            ExpectedValues.of(fields, column, config.commit.partition_time),
            PartitionClock.of(config),
            config.commit.delay,
            tuple(key.name for key in fields),
            tuple(dict(zip(said.values, values, strict=True)) for values in combined),
        )

    @property
    def digest(self) -> str:
        """Hash of everything that decides which partitions are expected."""
        values = {name: sorted(texts) for name, texts in self.said.values.items()}
        start = self.said.start.isoformat()
        return digest([start, values, self.written.interval.to_json(), list(self.names)])

    def due(
        self, intervals: int, watermark: datetime
    ) -> Iterator[tuple[int, tuple[DuePartition, ...]]]:
        """Yield the intervals that the watermark has passed, each with its partitions.

        Args:
            intervals: how many were yielded before.
            watermark: as for the trigger: it has to be later than the end and the delay (PC-T04).

        Yields:
            How many intervals there are up to this one, and its partitions; none where the clock
            skips the interval.
        """
        while True:
            try:
                local = self._start(intervals)
                if self.said.end is not None and local >= self.said.end:
                    return
                end = interval_end(local, self.written.interval, self.clock.zone)
                if watermark <= end + self.delay:
                    return
            except OverflowError:
                return
            intervals += 1
            yield intervals, tuple(self._partitions(local, end))

    def expects(self, partition: Partition) -> bool:
        """Return whether a partition is one of the calendar's."""
        values = dict(partition.values)
        if any(values[name] not in texts for name, texts in self.said.values.items()):
            return False
        try:
            local = self.clock.time(partition).local
        except NoPartitionTime:
            return False
        is_early = local < self.said.start
        return not is_early and (self.said.end is None or local < self.said.end)

    def has_passed(self, partition: Partition, intervals: int) -> bool:
        """Return whether a partition belongs to the first intervals of the calendar."""
        return self.expects(partition) and self.clock.time(partition).local < self._start(intervals)

    def _start(self, intervals: int) -> datetime:
        """Return the local begin of an interval; counted from the start, so that months fit."""
        length = self.written.interval
        whole = Interval(months=length.months * intervals, span=length.span * intervals)
        return add(self.said.start, whole)

    def _partitions(self, local: datetime, end: datetime) -> Iterator[DuePartition]:
        start = local.replace(tzinfo=self.clock.zone).astimezone(UTC)
        if end <= start:
            return
        made = self.written.at(local)
        for fixed in self.fixed:
            values = {**made, **fixed}
            partition = Partition(tuple((name, values[name]) for name in self.names))
            yield DuePartition(partition, start, end)
