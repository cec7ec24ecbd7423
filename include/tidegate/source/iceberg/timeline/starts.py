"""Resolve `source.start` to the instant that the first window begins after (ICE-2.11–2.16)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.errors import (
    ChangelogParentMissing,
    EmptyTable,
    HistoryTruncated,
    InstantNotFound,
    StartNotAncestor,
)
from tidegate.model.instant import aware_time
from tidegate.source.iceberg.timeline.cursor import CursorState

if TYPE_CHECKING:
    from datetime import datetime

    from pyiceberg.table.snapshots import Snapshot

    from tidegate.config import IcebergSourceConfig
    from tidegate.model.instant import Instant
    from tidegate.source.iceberg.timeline.history import History

NEED_THE_STATE_BEFORE = frozenset({"changelog", "snapshot_diff"})
"""Read modes that compare the states on both sides of a commit."""
_REMEDY = "Go on with `source.on_truncated_history: oldest`, or start at a later time."


def first_checkpoint(history: History, config: IcebergSourceConfig) -> Instant | None:
    """Return the instant before the first change that `start` selects; None is the beginning.

    `latest` begins after the head. A start that includes a snapshot excludes its parent (ICE-2.13),
    even a parent that was expired.

    Raises:
        EmptyTable: `after` or `from` with a table that has no snapshot (ICE-2.6).
        SnapshotNotFound: the snapshot is not in the metadata.
        StartNotAncestor: the snapshot is not on the head's lineage (ICE-2.15).
        InstantNotFound: the text is not a snapshot id, an ISO time with a zone or a tag.
        HistoryTruncated: the time is before all that the table still keeps (ICE-2.14).
        ChangelogParentMissing: the mode compares states, and the first one was expired (ICE-3.12).
            A policy for expired checkpoints also applies to such a start.
    """
    checkpoint = _asked(history, config)
    if checkpoint is not None and config.read.output_mode in NEED_THE_STATE_BEFORE:
        _check_state(history, checkpoint, config.on_expired_cursor)
    return checkpoint


def as_of(history: History, moment: datetime, config: IcebergSourceConfig) -> Instant | None:
    """Return the last instant at or before a time; None: the table had none at that time.

    With `on_truncated_history: oldest`, the time of an expired instant means the last of these.

    Raises:
        HistoryTruncated: the time is before all that the table still keeps (ICE-2.14).
    """
    earlier = [snapshot for snapshot in history.ancestors if history.time(snapshot) <= moment]
    if earlier:
        return history.instant(earlier[-1])
    if history.is_whole:
        return None
    if config.on_truncated_history != "oldest":
        raise _truncated(history, moment.isoformat())
    return history.before(history.ancestors[0])


def _check_state(history: History, checkpoint: Instant, policy: str) -> None:
    cursor = history.cursor(checkpoint)
    goes_on = policy != "fail" and policy in cursor.policies
    if cursor.state is CursorState.CHILD_KEPT and not goes_on:
        raise ChangelogParentMissing(
            source=history.source,
            snapshot=str(history.after(checkpoint)[0].snapshot_id),
            parent=checkpoint.id,
            problem=f"snapshot {checkpoint.id} was expired",
        )


def _asked(history: History, config: IcebergSourceConfig) -> Instant | None:
    start = config.start
    words = {"earliest", "latest", "latest_inclusive"}
    if start.kind == "full" or (not history.ancestors and start.kind in words):
        return None
    if not history.ancestors:
        raise EmptyTable(source=history.source)
    if start.kind == "latest":
        return history.instant(history.ancestors[-1])
    if start.kind == "latest_inclusive":
        return history.before(history.ancestors[-1])
    if start.kind == "earliest":
        return history.before(history.ancestors[0])
    text, inclusive = str(start.value), start.kind == "from"
    named = history.named(text)
    if named is None:
        oldest = config.on_truncated_history == "oldest"
        return _by_time(history, text, inclusive=inclusive, oldest=oldest)
    if history.position(named.snapshot_id) is None:
        head = str(history.ancestors[-1].snapshot_id)
        raise StartNotAncestor(source=history.source, snapshot=text, head=head)
    return history.before(named) if inclusive else history.instant(named)


def _by_time(history: History, text: str, *, inclusive: bool, oldest: bool) -> Instant | None:
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
    # A start at exactly the oldest kept time misses nothing, as in
    # SnapshotUtil.oldestAncestorAfter.
    cut = first is history.oldest and not history.is_whole and history.time(first) != moment
    if cut and not oldest:
        raise _truncated(history, text)
    return history.before(first)


def _truncated(history: History, start: str) -> HistoryTruncated:
    return HistoryTruncated(
        source=history.source,
        start=start,
        oldest_kept=str(history.ancestors[0].snapshot_id),
        head=str(history.ancestors[-1].snapshot_id),
        remedy=_REMEDY,
    )
