"""Decide how to continue from a checkpoint: by its state, the policies and the read mode.

Pure: what a window reads, and what this means for the published rows (ICE-2.17 to 2.20).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidegate.config.reading import COMMIT_SEQUENCE, COMMIT_TIME
from tidegate.errors import (
    ChangelogParentMissing,
    CursorExpired,
    CursorOffLineage,
    HistoryTruncated,
)
from tidegate.model.plan import WindowKind
from tidegate.model.report import CheckpointState
from tidegate.source.iceberg.timeline.cursor import Cursor, CursorState
from tidegate.source.iceberg.timeline.starts import NEED_THE_STATE_BEFORE, first_checkpoint

if TYPE_CHECKING:
    from pyiceberg.table.snapshots import Snapshot

    from tidegate.config import IcebergSourceConfig
    from tidegate.model.instant import Instant
    from tidegate.source.iceberg.timeline.history import History


@dataclass(frozen=True)
class Continuation:
    """What follows a checkpoint."""

    snapshots: tuple[Snapshot, ...]
    """Ancestors that a window may end at, oldest first; in modes that read commit by commit, those
    whose changes are read."""
    mode: str
    """The read mode of a window that begins here: the configured one, or that of a policy."""
    start: Instant | None
    """The instant that the next window begins after."""
    kind: WindowKind = WindowKind.LOAD
    cursor: Cursor | None = None
    """None without a checkpoint."""
    unreadable: frozenset[int] = frozenset()
    """Snapshots whose changes are unknown, because the state before them is gone."""
    notes: tuple[str, ...] = ()
    """A note about the policy that was applied, for plan and report."""


def go_on(
    history: History, checkpoint: Instant | None, config: IcebergSourceConfig
) -> Continuation:
    """Return what follows a checkpoint up to the head of a history.

    Raises:
        CursorOffLineage, HistoryTruncated, CursorExpired: the history does not continue from the
            checkpoint, and the policy is `fail`, or not possible in this state (ICE-2.18).
    """
    mode = config.read.output_mode
    if checkpoint is None:
        return Continuation(history.ancestors, mode, None, _kind(mode))
    cursor = history.cursor(checkpoint)
    if mode == "snapshot":
        ends = history.after_common(cursor) or history.ancestors[-1:]
        caught_up = cursor.state is CursorState.CAUGHT_UP
        return Continuation(() if caught_up else ends, mode, None, WindowKind.RELOAD, cursor)
    lost_state = cursor.state is CursorState.CHILD_KEPT and mode in NEED_THE_STATE_BEFORE
    if cursor.state.joins_on and not lost_state:
        return Continuation(history.after(checkpoint), mode, checkpoint, cursor=cursor)
    return _by_policy(history, checkpoint, config, cursor)


def begin_again(history: History, config: IcebergSourceConfig) -> Continuation:
    """Return what is taken from the start mode on, whatever was taken before.

    Raises:
        TidegateError: the start is not found; see `first_checkpoint`.
    """
    mode = config.read.output_mode
    head = history.ancestors[-1:]
    if config.start.kind == "full" or mode == "snapshot":
        return Continuation(head, "snapshot", None, WindowKind.RELOAD)
    start = first_checkpoint(history, config)
    # `latest` has nothing to read; the window from head to head only moves the checkpoint.
    return Continuation(history.after(start) or head, mode, start, WindowKind.RESTART)


def within_window(
    history: History, start: Instant | None, config: IcebergSourceConfig
) -> Continuation:
    """Return how a window that was taken as a load is read up to the head of a history.

    Raises:
        CursorOffLineage, HistoryTruncated, CursorExpired: the history between its start and its end
            is broken; a replay may then use a policy that reads its commits, never one that begins
            again.
    """
    found = go_on(history, start, config)
    if found.kind.replaces_everything and found.notes and found.cursor is not None:
        raise found.cursor.refusal(history.source, with_kinds=config.read.emits_kinds)
    return found


def describe_checkpoint(
    history: History, checkpoint: Instant, config: IcebergSourceConfig
) -> CheckpointState:
    """Describe how a checkpoint relates to the head, and what the next load does."""
    cursor = history.cursor(checkpoint)
    try:
        found = go_on(history, checkpoint, config)
        joined = f"the next load reads {len(found.snapshots)} of the kept commits"
        detail = " ".join(found.notes) or joined
        ways_out: tuple[str, ...] = ()
    except (CursorOffLineage, HistoryTruncated, CursorExpired) as refused:
        detail = str(refused)
        ways_out = cursor.ways_out(with_kinds=config.read.emits_kinds)
    except ChangelogParentMissing as refused:
        # `reset` begins again, but not at `start`.
        detail, ways_out = str(refused), ()
    if cursor.state is CursorState.CAUGHT_UP:
        detail = "nothing to read"
    return CheckpointState(
        state=cursor.state.value,
        detail=detail,
        checkpoint=cursor.snapshot,
        head=cursor.head,
        common_ancestor=cursor.common_ancestor,
        oldest_kept=cursor.oldest_kept,
        sequence_gap=cursor.sequence_gap,
        ways_out=ways_out,
    )


def _kind(mode: str) -> WindowKind:
    return WindowKind.RELOAD if mode == "snapshot" else WindowKind.LOAD


def _by_policy(
    history: History, checkpoint: Instant, config: IcebergSourceConfig, cursor: Cursor
) -> Continuation:
    policy = getattr(config, cursor.option)
    # Reading everything again is right in each state, though ICE-2.17 lists it for one only.
    possible = policy in cursor.policies or policy == "full_reload"
    if policy == "fail" or not possible or not history.ancestors:
        raise cursor.refusal(history.source, with_kinds=config.read.emits_kinds)
    ends = history.after_common(cursor) or history.ancestors[-1:]
    note = (_note(cursor, policy),)
    if policy == "snapshot_diff":
        ends = _in_order(history, ends, checkpoint, config, cursor)
    if policy == "full_reload":
        return Continuation(ends, "snapshot", None, WindowKind.RELOAD, cursor, notes=note)
    if policy == "reset":
        return _restarted(history, config, cursor, note)
    if policy == "from_oldest":
        mode = config.read.output_mode
        # The changes of the oldest commit are unknown, because the state before it is gone.
        oldest = {ends[0].snapshot_id} if mode in NEED_THE_STATE_BEFORE else frozenset[int]()
        return Continuation(
            ends, mode, checkpoint, cursor=cursor, unreadable=frozenset(oldest), notes=note
        )
    return Continuation(ends, policy, checkpoint, cursor=cursor, notes=note)


def _in_order(
    history: History,
    ends: tuple[Snapshot, ...],
    checkpoint: Instant,
    config: IcebergSourceConfig,
    cursor: Cursor,
) -> tuple[Snapshot, ...]:
    """Return the ends whose changes sort after those of the checkpoint (ICE-3.23).

    After a rollback the head may be a commit that was read long ago, and its number and time would
    put the changes that undo the later ones before them.
    """
    at = replace(checkpoint, sequence_number=cursor.sequence_number)
    for column in (COMMIT_SEQUENCE, COMMIT_TIME):
        if column not in (config.read.columns or ()):
            continue
        ends = tuple(end for end in ends if _is_later(column, history.instant(end), at))
        if not ends:
            raise cursor.out_of_order(history.source, column)
    return ends


def _is_later(column: str, end: Instant, checkpoint: Instant) -> bool:
    if column == COMMIT_TIME:
        return end.time > checkpoint.time
    if end.sequence_number is None or checkpoint.sequence_number is None:
        return True  # Format 1 has no numbers: the column is NULL and orders nothing.
    return end.sequence_number > checkpoint.sequence_number


def _restarted(
    history: History, config: IcebergSourceConfig, cursor: Cursor, notes: tuple[str, ...]
) -> Continuation:
    """Drop the checkpoint and apply the start mode (ICE-2.18)."""
    found = begin_again(history, config)
    if found.kind is WindowKind.RELOAD:
        found = replace(found, snapshots=history.after_common(cursor) or found.snapshots)
    return replace(found, cursor=cursor, notes=notes)


def _note(cursor: Cursor, policy: str) -> str:
    gap = f"; {cursor.gap_text}" if cursor.state is not CursorState.OFF_LINEAGE else ""
    where = f", common ancestor {cursor.common_ancestor}" if cursor.common_ancestor else ""
    return (
        f"checkpoint {cursor.snapshot} is {cursor.state.value} of head {cursor.head}{where}"
        f"{gap}: `{cursor.option}: {policy}` {_DOES[policy]}"
    )


_DOES = {
    "snapshot_diff": "compares the states at both ends",
    "lineage_upserts": "reads rows that were written since; rows deleted meanwhile are not seen",
    "full_reload": "reads the whole table and replaces what was published",
    "from_oldest": "goes on with the oldest kept snapshot; commits before it are not read. To "
    "publish the whole table as it stands, replace `source.on_expired_cursor: "
    "from_oldest` by `source.read.mode: snapshot` for one load, once the next commit has come",
    "reset": "begins again at `start` and replaces what was published",
}
