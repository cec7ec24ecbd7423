"""Read when a partition begins and ends from its values, across clock changes.

Values made by `day()`, `hour()`, `month()` are read back in the format of `model.partition_value`;
other values by pattern and formatter (PC-T10–T16). Decides nothing about committing.
"""

from __future__ import annotations

import calendar
import functools
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from tidegate.commit.extractor import NotExtracted, extracted, load_extractor
from tidegate.config.time_format import TimeFormat, TimeUnreadable
from tidegate.model.partition import Partition, Transform
from tidegate.model.partition_value import INTERVALS, Interval, hour_is_of_day, time_fields
from tidegate.model.watermark import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tidegate.commit.extractor import Extractor
    from tidegate.config import PartitionTimeConfig, PipelineConfig
    from tidegate.model.partition import PartitionField

_MADE = TimeFormat.compile("yyyy-MM-dd'T'HH")
_FINEST_LAST = (Transform.MONTH, Transform.DAY, Transform.HOUR)
_REACH = timedelta(hours=48)
"""Local time and UTC differ by less than a day, and so does the largest jump of a clock."""
_PROBE = timedelta(hours=1)
_PROBES = 24


class NoPartitionTime(ValueError):
    """The values of a partition name no time (PC-T16, T17)."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True)
class PartitionTime:
    """The time of one partition."""

    local: datetime
    """The time that its values name: naive, wall clock time in the pipeline's zone."""
    start: datetime
    """The same as an instant, UTC (PC-T19)."""
    end: datetime | None
    """First instant after the partition, UTC (PC-T20); None if its length is unknown."""

    @property
    def boundary(self) -> datetime:
        """The time that the watermark has to pass, without any delay."""
        return self.start if self.end is None else self.end


@dataclass(frozen=True)
class PartitionClock:
    """Reads the times of the partitions of one target."""

    zone: ZoneInfo
    made: tuple[PartitionField, ...]
    """Keys made from one column by `day()`, `hour()`, `month()`; empty: the pattern decides."""
    pattern: str | None
    form: TimeFormat
    lenient: bool
    interval: Interval | None
    extractor: Extractor | None = None
    """Reads the time in place of pattern and formatter (PC-T18)."""

    @classmethod
    def of(cls, config: PipelineConfig) -> PartitionClock:
        """Build the reader from a pipeline file.

        Raises:
            ExtractorUnknown: it names a class that cannot be built.
        """
        column = config.event_time.column if config.event_time else None
        made = time_fields(config.target.partition_by, column)
        zone = ZoneInfo(config.timezone)
        if made:
            finest = max(made, key=lambda field: _FINEST_LAST.index(field.transform))
            return cls(zone, made, None, _MADE, lenient=False, interval=INTERVALS[finest.transform])
        return cls._configured(zone, config.commit.partition_time)

    @classmethod
    def _configured(cls, zone: ZoneInfo, said: PartitionTimeConfig | None) -> PartitionClock:
        if said is None:
            return cls(zone, (), None, TimeFormat.compile(None), lenient=False, interval=None)
        form = TimeFormat.compile(said.formatter)
        own = None
        if said.extractor is not None:
            own = load_extractor(said.extractor, said.parameters)
        return cls(zone, (), said.pattern, form, said.lenient, said.interval, own)

    def time(self, partition: Partition) -> PartitionTime:
        """Return the time of a partition.

        Raises:
            NoPartitionTime: a value that has the time is missing, cannot be read as a time, or is
                beyond the calendar.
        """
        try:
            local = self._local(partition)
            start = local.replace(tzinfo=self.zone).astimezone(UTC)
            end = None if self.interval is None else interval_end(local, self.interval, self.zone)
        except (TimeUnreadable, NotExtracted, OverflowError) as problem:
            detail = f"{partition}: no partition time: {problem}"
            if not self.made:
                detail += "; set `commit.partition_time`, or `commit.trigger: process-time`"
            raise NoPartitionTime(Reason.TIME_UNPARSABLE, detail) from problem
        return PartitionTime(local, start, end)

    def bounds(self, partition: Partition) -> tuple[datetime | None, datetime | None]:
        """Return start and end as instants; None if the values do not tell them."""
        try:
            when = self.time(partition)
        except NoPartitionTime:
            return None, None
        return when.start, when.end

    def _local(self, partition: Partition) -> datetime:
        if self.extractor is not None:
            values = dict(partition.values)
            texts = [_needed(partition, values, name) for name in values]
            return extracted(self.extractor, list(values), texts)
        text = self._made_text(partition) if self.made else self._pattern_text(partition)
        return self.form.read(text, lenient=self.lenient)

    def _made_text(self, partition: Partition) -> str:
        values = dict(partition.values)
        text = {field.transform: _needed(partition, values, field.name) for field in self.made}
        if Transform.HOUR not in text:
            return f"{text.get(Transform.DAY) or text[Transform.MONTH] + '-01'}T00"
        hour = next(field for field in self.made if field.transform is Transform.HOUR)
        if hour_is_of_day(hour, self.made):
            return f"{text[Transform.DAY]}T{text[Transform.HOUR]}"
        return text[Transform.HOUR]

    def _pattern_text(self, partition: Partition) -> str:
        values = dict(partition.values)
        if not values:
            raise NoPartitionTime(Reason.TIME_UNPARSABLE, "the target has no partition keys")
        if self.pattern is None:
            return _needed(partition, values, partition.values[0][0])
        # PC-T11: literal, in one pass, longest key first.
        names = sorted(values, key=len, reverse=True)
        key = re.compile(r"\$(" + "|".join(re.escape(name) for name in names) + ")")
        return key.sub(lambda match: _needed(partition, values, match.group(1)), self.pattern)


def _needed(partition: Partition, values: Mapping[str, str | None], name: str) -> str:
    value = values.get(name)
    if value is None:
        detail = f"{partition}: no value of '{name}', so it has no partition time"
        raise NoPartitionTime(Reason.DEFAULT_PARTITION, detail)
    return value


def interval_end(local: datetime, interval: Interval, zone: ZoneInfo) -> datetime:
    """Return the first instant from which the clock never shows the interval again (PC-T20).

    A repeated hour ends after its second occurrence; an interval that the clock jumps over ends
    with the jump.

    Args:
        local: naive start of the interval.
        interval: its length in local time.
        zone: the clock.

    Returns:
        The instant, UTC.

    Raises:
        OverflowError: the end is beyond the calendar.
    """
    local_end = add(local, interval)
    ends, jumps = [], []
    for begin, finish, offset in _constant_offsets(local_end, zone):
        first, last = max(begin, _instant(local, offset)), min(finish, _instant(local_end, offset))
        if first < last:
            ends.append(last)
        elif _instant(local, offset) >= finish:
            jumps.append(finish)
    return max(ends or jumps)


def _instant(local: datetime, offset: timedelta) -> datetime:
    return (local - offset).replace(tzinfo=UTC)


def add(local: datetime, interval: Interval) -> datetime:
    """Return a local time that is later by an interval; a day is cut to its month.

    Raises:
        OverflowError: it is beyond the calendar.
    """
    months = local.month - 1 + interval.months
    year, month = local.year + months // 12, months % 12 + 1
    if year > 9999:
        msg = "year 10000 is beyond the calendar"
        raise OverflowError(msg)
    day = min(local.day, calendar.monthrange(year, month)[1])
    return local.replace(year=year, month=month, day=day) + interval.span


def _constant_offsets(
    local: datetime, zone: ZoneInfo
) -> Iterator[tuple[datetime, datetime, timedelta]]:
    """Cut the days around a local time into (begin, end, offset) between clock changes."""
    begin = (local - _REACH).replace(tzinfo=UTC)
    last = (local + _REACH).replace(tzinfo=UTC)
    changes = list(_changes(begin, last, zone))
    for change in [*changes, last]:
        yield begin, change, _offset(begin, zone)
        begin = change


def _changes(begin: datetime, last: datetime, zone: ZoneInfo) -> Sequence[datetime]:
    found: list[datetime] = []
    day = begin.date()
    while day <= last.date():
        found += _changes_of_day(day, zone)
        if day == date.max:
            break
        day += timedelta(days=1)
    return [change for change in found if begin < change < last]


@functools.lru_cache(maxsize=4096)
def _changes_of_day(day: date, zone: ZoneInfo) -> tuple[datetime, ...]:
    """Return the clock changes after the begin of a day, UTC, and not after its end.

    Thousands of partitions lie around the same few days.
    """
    found = []
    moment = datetime(day.year, day.month, day.day, tzinfo=UTC)
    for _ in range(_PROBES):
        following = moment + _PROBE
        if _offset(moment, zone) != _offset(following, zone):
            found.append(_change_between(moment, following, zone))
        moment = following
    return tuple(found)


def _change_between(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """Find the whole second at which the offset becomes that of `after`."""
    low, high = 0, int((after - before).total_seconds())
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(before + timedelta(seconds=middle), zone) == _offset(before, zone):
            low = middle
        else:
            high = middle
    return before + timedelta(seconds=high)


def _offset(moment: datetime, zone: ZoneInfo) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta(0)
