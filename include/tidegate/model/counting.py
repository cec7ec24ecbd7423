"""Find the contributions to a partition that count: not set aside, and not replaced since."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tidegate.model.plan import WindowKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidegate.model.message import Contribution

_ALL_TIMES = datetime.min.replace(tzinfo=UTC)


def counting(contributions: Sequence[Contribution]) -> tuple[Contribution, ...]:
    """Return the contributions that count, in content order.

    Left out is what is set aside, and what a rebuild, a reload or a window that overwrites resets:
    all that is before it in content order. A history window is before the first load window,
    whenever it was taken, and a rebuild reads everything up to the checkpoint of its time; it
    therefore also replaces history taken later. What is set aside resets nothing.

    Returns:
        One that an undo took back to an earlier plan has the digest of that plan.
    """
    return _not_reset(effective(contributions), _newest_reset(contributions))


def rows_pending(contributions: Sequence[Contribution], standing: Mapping[str, str]) -> int:
    """Return how many rows count that the current revision does not have.

    Args:
        contributions: all that windows brought to a partition.
        standing: window → plan digest of what the revision has; empty if there is none.
    """
    return sum(
        item.rows
        for item in counting(contributions)
        if standing.get(str(item.window)) != item.plan_digest
    )


def set_aside(contributions: Sequence[Contribution]) -> tuple[Contribution, ...]:
    """Return what is set aside, in content order, unless it was reset."""
    aside = [item for item in contributions if item.aside is not None]
    return _not_reset(aside, _newest_reset(contributions))


def effective(contributions: Sequence[Contribution]) -> tuple[Contribution, ...]:
    """Return the contributions that are not set aside, by window, also those that were reset."""
    return tuple(
        item if item.counts_as is None else replace(item, plan_digest=item.counts_as)
        for item in sorted(contributions, key=lambda item: item.window)
        if item.counted_digest is not None
    )


def plans_of(contributions: Sequence[Contribution]) -> Mapping[str, str]:
    """Return window → plan digest of the contributions that are not set aside."""
    return {str(item.window): item.plan_digest for item in effective(contributions)}


def marks_of(contributions: Sequence[Contribution]) -> Mapping[str, str]:
    """Return window → plan digest and reason of the contributions that are set aside."""
    return {
        str(item.window): f"{item.plan_digest} {item.aside.value} {item.counts_as}"
        for item in contributions
        if item.aside is not None
    }


def content_order(item: Contribution) -> tuple[bool, datetime, int]:
    """Return the place of a contribution in its partition's content (design §2, content).

    History goes first, however late it was taken: by the time of its window's end where that is
    known, because a backfill may take the later interval first.
    """
    is_history = item.kind is WindowKind.HISTORY
    return not is_history, item.as_of or _ALL_TIMES, item.window


def _newest_reset(contributions: Sequence[Contribution]) -> Contribution | None:
    resets = [item for item in effective(contributions) if item.replaces]
    return max(resets, key=content_order, default=None)


def _not_reset(
    found: Sequence[Contribution], reset: Contribution | None
) -> tuple[Contribution, ...]:
    return tuple(
        item
        for item in sorted(found, key=content_order)
        if reset is None or content_order(item) >= content_order(reset)
    )
