"""Find the contributions to a partition that count, after rebuilds, reloads and overwriting."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tidegate.model.plan import WindowKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.model.message import Contribution

_ALL_TIMES = datetime.min.replace(tzinfo=UTC)


def counting(contributions: Sequence[Contribution]) -> tuple[Contribution, ...]:
    """Return the contributions that count, in content order.

    Left out is what a rebuild, a reload or a window that overwrites resets: all that is before it
    in content order. A history window is before the first load window, whenever it was taken, and a
    rebuild reads everything up to the checkpoint of its time; it therefore also replaces history
    taken later.
    """
    ordered = sorted(contributions, key=content_order)
    resets = [place for place, item in enumerate(ordered) if item.replaces]
    return tuple(ordered[resets[-1] :] if resets else ordered)


def content_order(item: Contribution) -> tuple[bool, datetime, int]:
    """Return the place of a contribution in its partition's content (design §2, content).

    History goes first, however late it was taken: by the time of its window's end where that is
    known, because a backfill may take the later interval first.
    """
    is_history = item.kind is WindowKind.HISTORY
    return not is_history, item.as_of or _ALL_TIMES, item.window
