"""Resolve `source.start` to the instant that the first window begins after (ICE-2.11–2.16)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.errors import (
    EmptyTable,
    HistoryTruncated,
    InstantNotFound,
    StartNotAncestor,
)
from tidegate.model.instant import Instant
from tidegate.source.iceberg.history import History, aware_time

if TYPE_CHECKING:
    from pyiceberg.table.snapshots import Snapshot

    from tidegate.config import Start


def first_checkpoint(history: History, start: Start) -> Instant | None:
    """Give the instant before the first change that `start` asks for; None is the beginning.

    `latest` begins after the head. A start inclusive of a snapshot is one exclusive of its parent
    (ICE-2.13), also of a parent that was expired.

    Raises:
        EmptyTable: `after` or `from` with a table that has no snapshot (ICE-2.6).
        SnapshotNotFound: the snapshot is not in the metadata.
        StartNotAncestor: the snapshot is not on the head's lineage (ICE-2.15).
        InstantNotFound: the text is neither a snapshot id nor an ISO time with a zone.
        HistoryTruncated: the time lies before what the table still keeps (ICE-2.14).
    """
    if start.kind == "full" or (not history.ancestors and start.kind in {"earliest", "latest"}):
        return None
    if not history.ancestors:
        raise EmptyTable(source=history.source)
    if start.kind == "latest":
        return history.instant(history.ancestors[-1])
    if start.kind == "earliest":
        return _before(history, history.ancestors[0])
    text = str(start.value)
    if text.isdecimal():
        snapshot = history.ancestors[_position(history, text)]
        return history.instant(snapshot) if start.kind == "after" else _before(history, snapshot)
    return _by_time(history, text, inclusive=start.kind == "from")


def _position(history: History, text: str) -> int:
    snapshot = history.snapshot(text)
    index = history.position(snapshot.snapshot_id)
    if index is None:
        head = history.instant(history.ancestors[-1]).id
        raise StartNotAncestor(source=history.source, snapshot=text, head=head)
    return index


def _by_time(history: History, text: str, *, inclusive: bool) -> Instant | None:
    moment = aware_time(text)
    if moment is None:
        raise InstantNotFound(source=history.source, instant=text)
    first: Snapshot | None = None
    for snapshot in reversed(history.ancestors):
        time = history.time(snapshot)
        if time < moment or (time == moment and not inclusive):
            break
        first = snapshot
    if first is None:
        return history.instant(history.ancestors[-1])
    # A start at exactly the oldest kept time misses nothing, as SnapshotUtil.oldestAncestorAfter
    # has it.
    if first is history.oldest and not history.is_whole and history.time(first) != moment:
        head = history.ancestors[-1].snapshot_id
        raise HistoryTruncated(
            source=history.source, start=text, oldest_kept=str(first.snapshot_id), head=str(head)
        )
    return _before(history, first)


def _before(history: History, snapshot: Snapshot) -> Instant | None:
    parent = snapshot.parent_snapshot_id
    if parent is None:
        return None
    index = history.position(parent)
    if index is None:
        # Expired: its own time is lost; its child's is the latest that it can have had.
        return Instant(str(parent), history.time(snapshot))
    return history.instant(history.ancestors[index])
