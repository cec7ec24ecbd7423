"""Tell which partitions differ from the source because a load passed over commits.

They may have rows that such commits removed, or lack rows that came with them. Pure: the windows
say in their summaries when such rows happened; a later rebuild settles it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from tidegate.model.counting import counting
from tidegate.model.instant import local_time
from tidegate.model.partition import Partition, Transform
from tidegate.model.partition_value import time_fields, value_format

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from tidegate.config import PipelineConfig
    from tidegate.model.ledger_rows import KnownPartition, PartitionState, WindowState
    from tidegate.model.time_bounds import TimeBounds

_LONGEST = timedelta(days=366)
_HOUR, _HALF_DAY = timedelta(hours=1), timedelta(hours=12)
"""Steps from one hour, and from one day or month, to the next, by which none is left out."""


def partitions_of(
    config: PipelineConfig,
    removed: Sequence[TimeBounds],
    brought: Sequence[TimeBounds],
    known: Sequence[PartitionState],
) -> list[Partition]:
    """Return the partitions that may have had rows, or have new ones, in their order.

    Those of new rows that nobody knows yet are among them if nothing but the event time makes them.

    Args:
        config: of the pipeline.
        removed: event times of rows that were removed.
        brought: event times of rows that were added.
        known: the partitions that the ledger knows.
    """
    changed = (*removed, *brought)
    found = [state.partition for state in known if _touches(config, changed, state)]
    made = {partition for each in brought for partition in _made(config, each)}
    return found + sorted(made.difference(state.partition for state in known), key=str)


def brought_partitions(
    config: PipelineConfig, windows: Iterable[WindowState]
) -> dict[Partition, int]:
    """Return the partitions that may have rows of passed over commits, with the newest window.

    Only those are known that nothing but the event time makes; whether there are such rows is not.
    """
    return {
        partition: item.window.sequence
        for item in passing_over(windows)
        for each in _brought(item)
        for partition in _made(config, each)
    }


def passing_over(windows: Iterable[WindowState]) -> tuple[WindowState, ...]:
    """Return the windows that passed over commits that changed rows."""
    return tuple(item for item in windows if item.sealed and (_removed(item) or _brought(item)))


def passed_over(
    config: PipelineConfig, windows: Iterable[WindowState], known: KnownPartition
) -> tuple[int, ...]:
    """Return the windows that passed over commits that may have changed rows of a partition.

    A partition that was read whole since has what the source had then.

    Args:
        config: of the pipeline.
        windows: see `passing_over`.
        known: the partition.
    """
    counted = counting(known.contributions)
    begin = max((item.window for item in counted if item.kind.replaces), default=0)
    first = min((item.window for item in counted if item.rows), default=None)

    def changed(item: WindowState) -> bool:
        had_rows = first is not None and first < item.window.sequence
        removed = _removed(item) if had_rows else ()
        return _touches(config, (*removed, *_brought(item)), known.state)

    return tuple(
        item.window.sequence for item in windows if item.window.sequence > begin and changed(item)
    )


def unknown_partitions(
    config: PipelineConfig, windows: Sequence[WindowState], known: Iterable[Partition]
) -> dict[Partition, int]:
    """Return the partitions that lack rows and that nobody knows yet, with the window that tells.

    Args:
        config: of the pipeline.
        windows: all of them.
        known: the partitions that the ledger knows.
    """
    found = brought_partitions(config, windows)
    for item in windows:
        for partition in item.window.partitions if item.sealed else ():
            if item.window.sequence > found.get(partition, item.window.sequence):
                # It was read whole, and had no rows.
                del found[partition]
    for partition in known:
        found.pop(partition, None)
    return found


def _removed(item: WindowState) -> tuple[TimeBounds, ...]:
    return item.summary.removed if item.summary else ()


def _brought(item: WindowState) -> tuple[TimeBounds, ...]:
    return (item.summary.brought if item.summary else None) or ()


def _is_by_event_time(config: PipelineConfig) -> bool:
    """Return whether partitions are made from the event time; otherwise any may have any row."""
    column = config.event_time.column if config.event_time else None
    made = time_fields(config.target.partition_by, column)
    return bool(made) and made[0].column == column


def _touches(config: PipelineConfig, changed: Sequence[TimeBounds], state: PartitionState) -> bool:
    by_time = _is_by_event_time(config)
    return any(not by_time or _may_hold(state, times) for times in changed)


def _may_hold(state: PartitionState, times: TimeBounds) -> bool:
    """Return whether rows of some event times may be in a partition, whose end is exclusive."""
    if state.start is None or state.end is None:
        return True
    if times.smallest is None or times.largest is None:
        return True
    return state.start <= times.largest and times.smallest < state.end


def _made(config: PipelineConfig, times: TimeBounds) -> Iterator[Partition]:
    """Yield the partitions of event times that nothing else makes, if the span is not too wide."""
    fields = config.target.partition_by
    made = time_fields(fields, config.event_time.column if config.event_time else None)
    first, last = times.smallest, times.largest
    if first is None or last is None or last - first > _LONGEST:
        return
    if len(made) < len(fields) or not _is_by_event_time(config):
        return
    zone = ZoneInfo(config.timezone)
    formats = [(field.name, value_format(field, fields)) for field in fields]
    has_hours = any(field.transform is Transform.HOUR for field in made)
    for moment in (*_steps(first, last, _HOUR if has_hours else _HALF_DAY), last):
        local = local_time(moment, zone)
        # Years before 1000 have four digits, too.
        dated = ((name, form.replace("%Y", f"{local.year:04}")) for name, form in formats)
        yield Partition(tuple((name, local.strftime(form)) for name, form in dated))


def _steps(first: datetime, last: datetime, step: timedelta) -> Iterator[datetime]:
    for count in range(-((first - last) // step)):
        yield first + count * step
