"""Decide whether a pending partition may be committed, and if not, why. Moves no files.

Flink calls this `PartitionCommitPredicate`. Both comparisons are strict: a watermark or a clock
exactly at the boundary is not enough (PC-T02, T04).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from tidegate.commit.partition_time import NoPartitionTime, PartitionClock
from tidegate.errors.commands import command
from tidegate.model.instant import local_time
from tidegate.model.watermark import Evaluation, Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tidegate.config import PipelineConfig
    from tidegate.model.partition import Partition

_UNITS = (
    ("d", timedelta(days=1)),
    ("h", timedelta(hours=1)),
    ("min", timedelta(minutes=1)),
    ("s", timedelta(seconds=1)),
    ("ms", timedelta(milliseconds=1)),
    ("µs", timedelta(microseconds=1)),
)
_IMPLAUSIBLE = timedelta(days=3650)


@dataclass(frozen=True)
class Tide:
    """The watermark and clock at the time of one evaluation."""

    now: datetime
    """Aware UTC."""
    watermark: datetime | None
    """That of the last sealed window; None before an event time has counted (PC-W09)."""
    idle: bool = False
    """The source has been silent for `idle_timeout` (PC-W07, `watermark.is_idle`)."""
    former: str | None = None
    """What the watermark was measured in, if the pipeline file says something else now."""
    is_final: bool = False
    """The source is closed, so that no watermark is higher (PC-M09); for one command only."""


@dataclass(frozen=True)
class _Pending:
    """The partition that waits to be committed."""

    partition: Partition
    first_seen: datetime
    clock: PartitionClock | None
    end: datetime | None


def evaluate(
    config: PipelineConfig,
    partition: Partition,
    *,
    first_seen: datetime,
    tide: Tide,
    clock: PartitionClock | None = None,
    end: datetime | None = None,
) -> Evaluation:
    """Evaluate one pending partition.

    Args:
        config: its pipeline, with trigger, delay and how partitions name their time.
        partition: the partition, with content that is staged and not committed.
        first_seen: the time of the announce of its first uncommitted rows (PC-T03).
        tide: what it is compared with.
        clock: the reader of partition times, where many partitions share one; by default a new one.
        end: the partition's end as the ledger has it, if it is known; for values that are made by
            `day()`, `hour()` and `month()` it can be no other one.

    Returns:
        Committable or not, with a reason of the closed list PC-C02 and the values compared.
    """
    if not config.commit.policies:
        detail = "`commit.policies` is empty, so that nothing is ever committed"
        return _refused(Reason.NO_POLICY, detail, tide)
    pending = _Pending(partition, first_seen, clock, end)
    return TRIGGERS[config.commit.trigger](config, pending, tide)


def _by_process_time(config: PipelineConfig, pending: _Pending, tide: Tide) -> Evaluation:
    delay, zone = config.commit.delay, ZoneInfo(config.timezone)
    first_seen = pending.first_seen
    if delay == timedelta(0):
        return Evaluation(True, None, "process time without delay", tide.now, first_seen)
    due = first_seen + delay
    seen = f"first seen {clock_text(first_seen, zone)}, delay {span_text(delay)}"
    if tide.now > due:
        return Evaluation(True, None, f"{seen}: over since {clock_text(due, zone)}", tide.now, due)
    detail = f"{seen}: due after {clock_text(due, zone)}; {_missing(tide.now, due)}"
    return _refused(Reason.DELAY_NOT_ELAPSED, detail, tide, due)


def _by_partition_time(config: PipelineConfig, pending: _Pending, tide: Tide) -> Evaluation:
    partition = pending.partition
    if not partition.values:
        return Evaluation(True, None, "no partition keys: committed after each load", tide.now)
    clock = pending.clock or PartitionClock.of(config)
    try:
        boundary = pending.end if clock.made else None
        boundary = boundary or clock.time(partition).boundary
        due = _due(boundary, config.commit.delay, partition)
    except NoPartitionTime as unknown:
        if unknown.reason is Reason.DEFAULT_PARTITION and (turn := _turn(config, pending, tide)):
            return turn
        # A name alone answers for the trigger, and not for rows that are counted upstream.
        alone = () if config.commit.counts is None else ("--final", "-m", "WHY")
        by_name = f"`{command('publish', config.name, partition, *alone)}` publishes it"
        detail = f"{unknown.detail}; {by_name}"
        if unknown.reason is Reason.DEFAULT_PARTITION and clock.made:
            detail += _put_aside(config, clock.made[0].column, partition)
        return _refused(unknown.reason, detail, tide)
    return _against(config, due, tide)


def _against(config: PipelineConfig, due: datetime, tide: Tide) -> Evaluation:
    """Compare the watermark with the time that it must pass."""
    zone = ZoneInfo(config.timezone)
    must = clock_text(due, zone)
    if tide.is_final:
        detail = f"the source is closed: no row before {must} {zone.key} follows"
        return Evaluation(True, None, detail, tide.now, due)
    if tide.watermark is None:
        missing = "no watermark yet: no load has brought an event time"
        if tide.former is not None:
            missing = (
                f"the watermark was measured in {tide.former}, and does not count since "
                "`event_time` was changed: the next load that brings rows begins one"
            )
        detail = f"{missing}; it must pass {must} {zone.key}"
        return _refused(Reason.WATERMARK_UNDEFINED, detail, tide, due)
    stands = f"watermark {clock_text(tide.watermark, zone)} {zone.key}"
    if tide.watermark > due:
        return Evaluation(True, None, f"{stands} has passed {must}", tide.now, due)
    detail = f"{stands} must pass {must}; {_missing(tide.watermark, due)}"
    if due - tide.watermark > _IMPLAUSIBLE and config.event_time is not None:
        detail += "; event times that are so far off may be numbers of another `event_time.unit`"
    if tide.idle and config.event_time is not None and config.event_time.when_idle == "wait":
        silent = f"{detail}; the source is idle and `event_time.when_idle` says wait"
        return _refused(Reason.ALL_SOURCES_IDLE, silent, tide, due)
    return _refused(Reason.WATERMARK_BEHIND, detail, tide, due)


def _turn(config: PipelineConfig, pending: _Pending, tide: Tide) -> Evaluation | None:
    """Evaluate a partition without a time as the pipeline file says (PC-T17).

    Returns:
        None if only a command with its name publishes it.
    """
    turn, zone = config.commit.default_partition, ZoneInfo(config.timezone)
    if turn.at_end:
        detail = "it has no partition time; `commit.default_partition` says at_end"
        if tide.is_final:
            return Evaluation(True, None, f"{detail}, and the source is closed", tide.now)
        final = command("publish", config.name, "--final")
        counted = "" if config.commit.counts is None else ", once its counts hold"
        told = f"{detail}: `{final}` publishes it{counted}"
        return _refused(Reason.DEFAULT_PARTITION, told, tide)
    if turn.after is None:
        return None
    due = pending.first_seen + turn.after
    seen = f"no partition time, first seen {clock_text(pending.first_seen, zone)}"
    if tide.now > due:
        detail = f"{seen}: over since {clock_text(due, zone)}"
        return Evaluation(True, None, detail, tide.now, due)
    detail = f"{seen}: due after {clock_text(due, zone)}; {_missing(tide.now, due)}"
    return _refused(Reason.DEFAULT_PARTITION, detail, tide, due)


def _due(boundary: datetime, delay: timedelta, partition: Partition) -> datetime:
    """Return the time that the watermark must pass.

    Raises:
        NoPartitionTime: it is beyond the calendar; other partitions are not stopped (PC-T05).
    """
    try:
        return boundary + delay
    except OverflowError as beyond:
        detail = f"{partition}: its time and `commit.delay` lead beyond the calendar"
        raise NoPartitionTime(Reason.TIME_UNPARSABLE, detail) from beyond


TRIGGERS: Mapping[str, Callable[[PipelineConfig, _Pending, Tide], Evaluation]] = {
    "partition-time": _by_partition_time,
    "process-time": _by_process_time,
}
"""Word of `commit.trigger` → the function that decides."""


def _put_aside(config: PipelineConfig, column: str, partition: Partition) -> str:
    """Return how rows without an event time, which were read already, are put aside."""
    rule, again = f"{column} is not null", f"`{command('rebuild', config.name, partition)}`"
    if any(" ".join(item.where.lower().split()) == rule.lower() for item in config.rows):
        return f"; {again} puts aside such rows that were read before the row rule `{rule}`"
    return f"; after a row rule `{rule}` is added to `rows`, {again} puts such rows aside"


def _refused(reason: Reason, detail: str, tide: Tide, due: datetime | None = None) -> Evaluation:
    return Evaluation(False, reason, detail, tide.now, due)


def _missing(found: datetime, due: datetime) -> str:
    if found == due:
        return "it stands exactly there, and must be later"
    return f"{span_text(due - found)} missing"


@functools.lru_cache(maxsize=16384)
def clock_text(moment: datetime, zone: ZoneInfo) -> str:
    """Return an instant as wall clock time of a zone, to the minute if that is exact.

    In an hour that occurs twice, the offset tells which one it is.
    """
    local = local_time(moment, zone)
    exact = local.second == 0 and local.microsecond == 0
    timespec = "minutes" if exact else "seconds" if local.microsecond == 0 else "milliseconds"
    naive = local.replace(tzinfo=None)
    text = naive.isoformat(" ", timespec)
    repeated = local.utcoffset() != local.replace(fold=1 - local.fold).utcoffset()
    return f"{text}{local.strftime('%z')}" if repeated else text


def span_text(span: timedelta) -> str:
    """Return a duration in its two largest units: `12 h 1 min`."""
    for index, (unit, size) in enumerate(_UNITS):
        if span >= size:
            count, rest = divmod(span, size)
            smaller, part = _UNITS[min(index + 1, len(_UNITS) - 1)]
            more = f" {rest // part} {smaller}" if rest // part else ""
            return f"{count} {unit}{more}"
    return "0 s"
