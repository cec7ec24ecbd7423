"""Foresee that the next load of a table will be refused, because files that it needs are gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.errors import HudiChangesLost, HudiFilesCleaned, TidegateError
from tidegate.model.instant import InstantRange

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tidegate.model.instant import Instant
    from tidegate.model.plan import Pin
    from tidegate.source.hudi.access import TableAccess
    from tidegate.source.hudi.timeline.kept import Kept

    Slices = Callable[[Pin, InstantRange], object]
    """Lists the slices of a window, and raises if files that it needs are gone."""


def refusal_ahead(
    access: TableAccess,
    slices: Slices,
    pin: Pin,
    checkpoint: Instant,
    ends: Sequence[Instant],
    kept: Kept | None,
) -> str | None:
    """Return what a load up to the head would say in refusal; None if it finds its files.

    It is tried out only where the state of the checkpoint may be gone: nothing else is needed of
    what a cleaner removes.

    Args:
        access: opens the table.
        slices: lists those of a window.
        pin: the table as it was looked at.
        checkpoint: after which the load begins.
        ends: instants at which its windows may end; with `source.limits`, the first one may.
        kept: what the table keeps up to the checkpoint.
    """
    if kept is None or kept.writes or not access.config.read.emits_kinds or not ends:
        return None
    try:
        slices(pin, InstantRange(checkpoint, ends[-1]))
    except (HudiChangesLost, HudiFilesCleaned) as refused:
        return str(refused)
    except TidegateError:
        # Whatever else is wrong is told by the load itself.
        return None
    return None
