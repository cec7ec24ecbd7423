"""Sum up the planning of a window, for the explanation of a plan (ICE-5.18)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tidegate.model.plan_record import InstantAction, Listed
from tidegate.source.iceberg.timeline.history import operation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyiceberg.table.snapshots import Snapshot

    from tidegate.config import TableReadConfig
    from tidegate.model.instant import InstantRange
    from tidegate.source.iceberg.changes.changelog import PlannedFiles
    from tidegate.source.iceberg.manifests.decode import ManifestReader
    from tidegate.source.iceberg.timeline.history import History


def listed(
    planned: PlannedFiles, manifests: ManifestReader, instants: Sequence[InstantAction]
) -> Listed:
    """Sum up a planning.

    Args:
        planned: the files found.
        manifests: the manifests read.
        instants: what was done with the window's snapshots.
    """
    left_out = {
        phrase.replace("{} ", ""): count for phrase, count in planned.tally.items() if count
    }
    return Listed(tuple(instants), manifests.manifests_read, left_out, planned.removed or None)


def instant_actions(
    history: History, window: InstantRange, read: TableReadConfig, skipped: Mapping[str, int]
) -> tuple[InstantAction, ...]:
    """Return what was done with the snapshots of a window that reads changes, by class.

    Args:
        history: the history up to the window's end.
        window: the window.
        read: the reading options.
        skipped: class → how many were skipped.
    """
    if read.mode == "snapshot_diff" or read.net_changes:
        return (InstantAction("state", "compared", 2 if window.start_exclusive else 1),)
    kinds = Counter(operation(step) or "unnamed" for step in _steps(history, window))
    left = {kind: count - skipped.get(kind, 0) for kind, count in kinds.items()}
    actions = [
        *(InstantAction(kind, "read", count) for kind, count in left.items() if count > 0),
        *(InstantAction(kind, "skipped", count) for kind, count in skipped.items()),
    ]
    return tuple(sorted(actions, key=lambda it: (it.action, it.kind)))


def _steps(history: History, window: InstantRange) -> Sequence[Snapshot]:
    start = window.start_exclusive
    place = history.position(int(start.id)) if start else None
    return history.ancestors if place is None else history.ancestors[place + 1 :]
