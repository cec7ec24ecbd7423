"""Read and number the erasures of a pipeline. They are never changed, and never deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.errors import ErasedSince
from tidegate.model.erasure import Erasure
from tidegate.stage import layout
from tidegate.stage.stored import read_stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.model.plan import ScanPlan
    from tidegate.storage import Storage


def newest_erasure(storage: Storage, work: str) -> int | None:
    """Return the number of the newest erasure; None if nothing was erased."""
    return max(_numbers(storage, work), default=None)


def erasures(storage: Storage, work: str, until: int | None = None) -> tuple[Erasure, ...]:
    """Return the erasures of a pipeline.

    Args:
        storage: of the work directory.
        work: the work directory.
        until: the number of the last one; by default the newest.

    Raises:
        StateFileDamaged: one cannot be read.
        StateFileLost: one is gone.
    """
    last = newest_erasure(storage, work) if until is None else until
    return tuple(
        read_stored(storage, layout.erasure_file(work, number), Erasure)
        for number in range(1, (last or 0) + 1)
    )


def lasting(known: Sequence[Erasure]) -> list[Erasure]:
    """Return the erasures by columns that the rows of every later window must have."""
    replaced = {number for item in known for number in item.instead or ()}
    return [item for item in known if not item.is_past and item.number not in replaced]


def unfinished_erasures(storage: Storage, work: str) -> tuple[int, ...]:
    """Return the erasures that no report says to be done."""
    names = storage.list_names(layout.erasures_root(work))
    done = max(filter(None, map(layout.reported_erasure, names)), default=0)
    return tuple(number for number in _numbers(storage, work) if number > done)


def check_erased(storage: Storage, work: str, scan: ScanPlan) -> None:
    """Check that a plan left out all that is erased by now.

    Raises:
        ErasedSince: it was made before an erasure (Transient).
    """
    newest = newest_erasure(storage, work)
    if newest is not None and newest > (scan.erased or 0):
        window = scan.window.sequence
        raise ErasedSince(pipeline=scan.pipeline, window=window, number=newest)


def _numbers(storage: Storage, work: str) -> list[int]:
    names = storage.list_names(layout.erasures_root(work))
    found = (layout.number_of_erasure(name) for name in names)
    return sorted(number for number in found if number is not None)
