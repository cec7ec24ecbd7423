"""Decide which window a run gets, purely (design §4, taking a window)."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from tidegate.errors import WindowOverlap
from tidegate.model.instant import DataInterval, Instant, InstantRange
from tidegate.model.plan import WindowKind

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tidegate.model.ledger_rows import PipelineState, WindowState


def is_behind(
    interval: DataInterval | None,
    state: PipelineState,
    sealed: Sequence[WindowState],
    start: datetime | None,
) -> bool:
    """Return whether a run's interval was taken in before, so that the run only replays.

    An interval that ends before the start is behind as well, even if it ends after the last instant
    before the start: its result must not depend on whether something after it was taken.

    Args:
        interval: the run's data interval; a run without one always works ahead.
        state: the pipeline as it stands.
        sealed: sealed windows that were taken for the interval, or whose end lies in it.
        start: the time that `source.start` names; it counts until something after it was taken.
    """
    if interval is None:
        return False
    if any(item.window.interval == interval for item in sealed):
        return True
    if start is not None and state.checkpoint == state.first_start and interval.end <= start:
        return True
    return state.checkpoint is not None and state.checkpoint.time >= interval.end


def ahead(
    instants: Sequence[Instant], checkpoint: Instant | None, end_exclusive: datetime | None
) -> InstantRange | None:
    """Return what follows the checkpoint, up to the end (design §4, case 1).

    Args:
        instants: what follows the checkpoint, in the source's order.
        checkpoint: end of the last sealed window; None at the beginning.
        end_exclusive: end of the data interval; None: everything is taken.

    Returns:
        The range; None if there is nothing to take.
    """
    taken = list(
        itertools.takewhile(
            lambda item: end_exclusive is None or item.time < end_exclusive, instants
        )
    )
    return InstantRange(checkpoint, taken[-1]) if taken else None


def history(
    retained: Sequence[Instant],
    interval: DataInterval,
    windows: Sequence[WindowState],
    pipeline: str,
) -> InstantRange | None:
    """Return the instants of the interval that are before the start (design §4, case 3).

    Args:
        retained: instants before the first window, in the source's order.
        interval: the run's data interval.
        windows: all windows of the pipeline.
        pipeline: its name, for the error.

    Returns:
        The range; None if the interval has no such instant, or they were taken before.

    Raises:
        WindowOverlap: a history window covers only some of them, or others as well.
    """
    inside = [position for position, item in enumerate(retained) if interval.covers(item.time)]
    if not inside:
        return None
    first, last = inside[0], inside[-1]
    wanted = {item.id for item in retained[first : last + 1]}
    taken = [
        (item, _covered(item.window.range, retained))
        for item in windows
        if item.window.kind is WindowKind.HISTORY
    ]
    overlapping = [(item, covered) for item, covered in taken if covered & wanted]
    fresh = wanted.difference(*(covered for _, covered in overlapping))
    for item, covered in overlapping:
        if fresh or covered - wanted:
            raise WindowOverlap(
                pipeline=pipeline,
                interval=str(interval),
                window=f"history window {item.window.sequence} {item.window.range}",
            )
    if not fresh:
        return None
    return InstantRange(retained[first - 1] if first else None, retained[last])


def covering(windows: Sequence[WindowState], interval: DataInterval) -> WindowState | None:
    """Return the window that would have an interval's instants.

    This is the first one that ends at or after the interval's end, unless it begins after it.
    """
    loads = (item for item in windows if item.window.kind.moves_checkpoint)
    for item in loads:
        if item.window.range.end_inclusive.time >= interval.end:
            after = item.window.range.start_exclusive
            return None if after is not None and interval.end <= after.time else item
    return None


def _covered(taken: InstantRange, retained: Sequence[Instant]) -> set[str]:
    ids = [item.id for item in retained]
    start = (
        ids.index(taken.start_exclusive.id) + 1
        if taken.start_exclusive and taken.start_exclusive.id in ids
        else 0
    )
    end = ids.index(taken.end_inclusive.id) + 1 if taken.end_inclusive.id in ids else start
    return set(ids[start:end])
