"""Find the contributions to a partition that count, after rebuilds and reloads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.model.plan import WindowKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.model.message import Contribution


def counting(contributions: Sequence[Contribution]) -> tuple[Contribution, ...]:
    """Leave out what a rebuild or reload resets: every window taken before it, and all history.

    A history window is before the first load window, whenever it was taken, and a rebuild reads
    everything up to the checkpoint of its time; it therefore also replaces history taken later.
    """
    ordered = sorted(contributions, key=lambda item: item.window)
    rebuilds = [item.window for item in ordered if item.kind.replaces]
    if not rebuilds:
        return tuple(ordered)
    newest = rebuilds[-1]
    return tuple(
        item for item in ordered if item.window >= newest and item.kind is not WindowKind.HISTORY
    )
