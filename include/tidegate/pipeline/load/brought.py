"""Tell from the commit messages of a window what it brought, as its announce says it. Pure."""

from __future__ import annotations

import functools
from collections import defaultdict
from typing import TYPE_CHECKING

from tidegate.commit.watermark import advance, commit_times
from tidegate.config import PipelineConfig
from tidegate.model.ignored_deletes import IgnoredDeletes
from tidegate.model.message import Contribution, EventTimes, RunSummary
from tidegate.model.sealed import SealedWindow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    from tidegate.model.ledger_rows import PipelineState
    from tidegate.model.message import CommitMessage, PartFile
    from tidegate.model.partition import Partition
    from tidegate.model.plan import ScanPlan
    from tidegate.model.watermark import WatermarkStep


def drafted(
    scan: ScanPlan,
    messages: Sequence[CommitMessage],
    before: PipelineState,
    now: datetime,
    *,
    is_known: Callable[[Partition], bool],
) -> SealedWindow:
    """Return what is announced of a window; it has no number yet.

    Args:
        scan: the plan.
        messages: one of each of its sub-splits, in plan order.
        before: the pipeline before the announce.
        now: aware UTC clock of the announce.
        is_known: whether a partition is there to be emptied.
    """
    return SealedWindow(
        pipeline=scan.pipeline,
        ledger_id=before.ledger_id,
        window=scan.window,
        plan_digest=scan.digest,
        contributions=(*contributions_of(messages, scan), *_emptied(messages, scan, is_known)),
        watermark=_step(scan, messages, before.watermark_step, now),
        summary=_summary(messages, scan),
        announced_at=now,
        first_start=before.first_start,
        source_identity=scan.pin.identity,
        fingerprint=scan.fingerprint,
    )


def _step(
    scan: ScanPlan,
    messages: Sequence[CommitMessage],
    previous: WatermarkStep | None,
    now: datetime,
) -> WatermarkStep:
    event_times = EventTimes()
    for message in messages:
        event_times = event_times.merged(message.event_times)
    said = PipelineConfig.from_resolved(scan.config).event_time
    if said is not None and said.watermark_from == "commit_time":
        event_times = commit_times(scan.window.range.end_inclusive.time, said, now)
    rows_read = sum(message.rows_read for message in messages)
    return advance(said, previous, event_times, rows_read=rows_read, now=now)


def _emptied(
    messages: Sequence[CommitMessage], scan: ScanPlan, is_known: Callable[[Partition], bool]
) -> Iterator[Contribution]:
    """Yield empty contributions where a window read a partition whole and found no row.

    The ledger adds those of a window that replaces everything (design §2).
    """
    filled = {part.partition for message in messages for part in message.parts}
    for partition in scan.window.partitions:
        if partition not in filled and is_known(partition):
            yield Contribution(
                window=scan.window.sequence,
                partition=partition,
                plan_digest=scan.digest,
                messages=(),
                rows=0,
                bytes=0,
                event_times=EventTimes(),
                kind=scan.window.kind,
            )


def contributions_of(messages: Sequence[CommitMessage], scan: ScanPlan) -> tuple[Contribution, ...]:
    """Group what a window staged by partition, in path order; messages stay in plan order."""
    parts: dict[Partition, list[PartFile]] = defaultdict(list)
    speakers: dict[Partition, dict[str, None]] = defaultdict(dict)
    for message in messages:
        for part in message.parts:
            parts[part.partition].append(part)
            speakers[part.partition][message.sub_split] = None
    rules = _holding_rules(messages, scan)
    return tuple(
        Contribution(
            window=scan.window.sequence,
            partition=partition,
            plan_digest=scan.digest,
            messages=tuple(speakers[partition]),
            rows=sum(part.rows for part in parts[partition]),
            bytes=sum(part.length for part in parts[partition]),
            event_times=functools.reduce(
                EventTimes.merged, (part.event_times for part in parts[partition])
            ),
            held_rule=rules.get(partition),
            kind=scan.window.kind,
        )
        for partition in sorted(parts, key=lambda item: item.path)
    )


def _holding_rules(messages: Iterable[CommitMessage], scan: ScanPlan) -> dict[Partition, str]:
    """Name the rules that rows of each held partition failed, in the order of the pipeline file."""
    names = [rule["name"] for rule in scan.config["rows"] if rule["on_failure"] == "hold"]
    failed: dict[Partition, set[str]] = defaultdict(set)
    for message in messages:
        rules = message.held_rules or [names] * len(message.held)
        for partition, found in zip(message.held, rules, strict=True):
            failed[partition].update(found)
    return {
        partition: ", ".join(name for name in names if name in found)
        for partition, found in failed.items()
    }


def _summary(messages: Sequence[CommitMessage], scan: ScanPlan) -> RunSummary:
    parts = [part for message in messages for part in message.parts]
    ignored = [message.ignored for message in messages if message.ignored is not None]
    return RunSummary(
        rows_read=sum(message.rows_read for message in messages),
        rows_kept=sum(message.rows_kept for message in messages),
        rows_quarantined=sum(part.rows for message in messages for part in message.quarantined),
        rows_future=sum(message.event_times.future for message in messages),
        rows_carried_over=sum(message.settled.carried_over for message in messages),
        rows_unpaired=sum(message.settled.unpaired for message in messages),
        deletes_ignored=functools.reduce(IgnoredDeletes.plus, ignored, IgnoredDeletes()).total,
        bytes_written=sum(part.length for part in parts),
        files_written=len(parts),
        sub_splits=len(messages),
        left_out=scan.record.listed.left_out if scan.record else {},
    )
