"""Add up the staged rows of a window by target partition. Pure."""

from __future__ import annotations

import functools
from collections import defaultdict
from typing import TYPE_CHECKING

from tidegate.config import PipelineConfig
from tidegate.model.ignored import Ignored
from tidegate.model.message import Contribution, EventTimes, RunSummary, sum_by_name
from tidegate.model.partition import PartitionGroups
from tidegate.model.plan import WindowKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from tidegate.model.message import CommitMessage, PartFile
    from tidegate.model.partition import Partition
    from tidegate.model.plan import ScanPlan


def contributions_of(messages: Sequence[CommitMessage], scan: ScanPlan) -> tuple[Contribution, ...]:
    """Group the messages of a window by partition, in path order; messages stay in plan order."""
    parts: dict[Partition, list[PartFile]] = defaultdict(list)
    speakers: dict[Partition, dict[str, None]] = defaultdict(dict)
    for message in messages:
        for part in message.staged.parts:
            parts[part.partition].append(part)
            speakers[part.partition][message.sub_split] = None
    rules, failed = _holding_rules(messages, scan), _holding_rows(messages)
    overwrites, as_of = _overwrites(scan), _as_of(scan)
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
            held_rows=failed.get(partition),
            kind=scan.window.kind,
            overwrites=overwrites,
            as_of=as_of,
        )
        for partition in sorted(parts, key=lambda item: item.path)
    )


def _overwrites(scan: ScanPlan) -> bool:
    """Return whether the rows of a window replace those of their partitions (PC-F30)."""
    return scan.config["target"]["write"] == "overwrite" and not scan.window.kind.replaces


def _as_of(scan: ScanPlan) -> datetime | None:
    """Return what orders a history window among others; appended rows need no order."""
    is_ordered = scan.config["target"]["write"] != "append"
    is_history = scan.window.kind is WindowKind.HISTORY
    return scan.window.range.end_inclusive.time if is_ordered and is_history else None


def emptied(
    messages: Sequence[CommitMessage], scan: ScanPlan, known: Callable[[], Iterable[Partition]]
) -> Iterator[Contribution]:
    """Yield empty contributions to partitions that a window read whole without finding a row.

    Of partitions that no window had a row for, nothing has to be emptied. The ledger adds those of
    a window that replaces everything (design §2). The only partition of a static target is replaced
    by an empty result, too (PC-F31).

    Args:
        messages: one per sub-split.
        scan: the plan.
        known: lists the partitions that exist; called only if some were read whole.
    """
    filled = {part.partition for message in messages for part in message.staged.parts}
    target = PipelineConfig.from_resolved(scan.config).target if _overwrites(scan) else None
    if target is not None and target.is_static:
        emptied = {target.only_partition}
    elif target is not None:
        # What replaced their rows is erased.
        emptied = {it for message in messages for it in message.staged.emptied or ()}
    elif scan.read_whole:
        whole = PartitionGroups(scan.read_whole)
        emptied = {partition for partition in known() if partition in whole}
    else:
        return
    for partition in sorted(emptied - filled, key=lambda item: item.path):
        yield Contribution(
            window=scan.window.sequence,
            partition=partition,
            plan_digest=scan.digest,
            messages=(),
            rows=0,
            bytes=0,
            event_times=EventTimes(),
            kind=scan.window.kind,
            overwrites=target is not None,
            as_of=_as_of(scan),
        )


def summary_of(messages: Sequence[CommitMessage], scan: ScanPlan) -> RunSummary:
    """Summarize the load of a window."""
    parts = [part for message in messages for part in message.staged.parts]
    noted = [message.noted.ignored for message in messages if message.noted.ignored is not None]
    ignored = functools.reduce(Ignored.plus, noted, Ignored())
    rows_read = sum(message.staged.rows_read for message in messages)
    rows_kept = sum(message.staged.rows_kept for message in messages)
    aside = sum(part.rows for message in messages for part in message.staged.quarantined)
    erased = sum(message.staged.rows_erased or 0 for message in messages)
    is_rebuild = scan.window.kind is WindowKind.REBUILD
    removed = (scan.record.listed.removed or ()) if scan.record else ()
    return RunSummary(
        rows_read=rows_read,
        rows_kept=rows_kept,
        rows_quarantined=aside,
        rows_elsewhere=rows_read - rows_kept - aside if is_rebuild else 0,
        rows_erased=erased or None,
        rows_future=sum(message.staged.event_times.future for message in messages),
        rule_hits=sum_by_name(message.staged.rule_hits for message in messages),
        rows_carried_over=sum(message.noted.settled.carried_over for message in messages),
        rows_unpaired=sum(message.noted.settled.unpaired for message in messages),
        deletes_ignored=ignored.deletes,
        damaged=ignored.damaged,
        bytes_written=sum(part.length for part in parts),
        files_written=len(parts),
        sub_splits=len(messages),
        left_out=scan.record.listed.left_out if scan.record else {},
        removed=removed,
        removed_in=_event_column(scan) if removed else None,
        brought=scan.record.listed.brought if scan.record else None,
    )


def _event_column(scan: ScanPlan) -> str | None:
    event_time = scan.config["event_time"]
    return event_time["column"] if event_time else None


def _holding_rules(messages: Iterable[CommitMessage], scan: ScanPlan) -> dict[Partition, str]:
    """Return the rules that rows of each held partition failed, in the pipeline file's order."""
    names = [rule["name"] for rule in scan.config["rows"] if rule["on_failure"] == "hold"]
    failed: dict[Partition, set[str]] = defaultdict(set)
    for message in messages:
        for held in message.staged.held:
            failed[held.partition].update(held.rules)
    return {
        # Messages of the first format do not always name the rule.
        partition: ", ".join(name for name in names if name in found) or ", ".join(names)
        for partition, found in failed.items()
    }


def _holding_rows(messages: Iterable[CommitMessage]) -> dict[Partition, dict[str, int]]:
    """Count the rows of each held partition that failed a rule.

    Partitions of which a message of an earlier version does not tell the number are left out.
    """
    failed: dict[Partition, list[Mapping[str, int]]] = defaultdict(list)
    uncounted = set()
    for message in messages:
        for held in message.staged.held:
            if held.rows is None:
                uncounted.add(held.partition)
            else:
                failed[held.partition].append(held.rows)
    return {
        partition: sum_by_name(counts)
        for partition, counts in failed.items()
        if partition not in uncounted
    }
