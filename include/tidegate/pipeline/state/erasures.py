"""Read and number the erasures of a pipeline. They are never changed, and never deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.errors import ErasedSince, StateFileLost
from tidegate.model.erasure import Erasure, ErasureReport
from tidegate.model.plan import WindowKind
from tidegate.stage import layout
from tidegate.stage.stored import read_stored

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterator, Sequence

    from tidegate.model.instant import Instant
    from tidegate.model.plan import ScanPlan, Window
    from tidegate.storage import Storage


def newest_erasure(storage: Storage, work: str) -> int | None:
    """Return the number of the newest erasure; None if nothing was erased."""
    names = storage.list_names(layout.erasures_root(work))
    told = filter(None, map(layout.reported_erasure, names))
    return max((*_numbers(storage, work), *told), default=None)


def erasures(
    storage: Storage, work: str, until: int | None = None, without: Collection[int] = ()
) -> tuple[Erasure, ...]:
    """Return the erasures of a pipeline.

    Args:
        storage: of the work directory.
        work: the work directory.
        until: the number of the last one; by default the newest.
        without: those that may be gone, because their rows are being named once more.

    Raises:
        StateFileDamaged: one cannot be read.
        StateFileLost: one is gone, and no later one names the same rows.
    """
    last = newest_erasure(storage, work) if until is None else until
    found, lost = [], {}
    for number in range(1, (last or 0) + 1):
        try:
            found.append(read_stored(storage, layout.erasure_file(work, number), Erasure))
        except StateFileLost as gone:
            lost[number] = gone
    named = {number for item in found if item.columns for number in item.instead or ()}
    for number, refused in lost.items():
        if number not in named.union(without):
            raise refused
    return tuple(found)


def not_told(known: Sequence[Erasure], window: Window, untold: Container[int]) -> Erasure | None:
    """Return an erasure whose rows cannot be told among those that a window reads.

    Args:
        known: all erasures of the pipeline, by number.
        window: what is read.
        untold: the numbers of those that the columns which are read do not tell by themselves.

    Returns:
        None if all can be told, be it by another erasure of the same rows, or none of them can be
        among rows that came so late.
    """
    late = {item.number for item in known if _is_over(item, known, window)}
    by_itself = {
        item.number: item.number not in late and item.number not in untold for item in known
    }
    # By those that stand instead of it, or by all that it stands instead of.
    by_later, by_earlier = dict(by_itself), dict(by_itself)
    for item in known:
        if item.columns and item.instead:
            by_earlier[item.number] |= all(by_earlier.get(number) for number in item.instead)
    for item in reversed(known):
        for number in (item.columns and item.instead) or ():
            by_later[number] = by_later.get(number, False) or by_later[item.number]
    for item in known:
        number = item.number
        if item.columns and number not in late and not (by_later[number] or by_earlier[number]):
            return item
    return None


def _is_over(item: Erasure, known: Sequence[Erasure], window: Window) -> bool:
    """Return whether a window has only rows that came too late to be those of an erasure."""
    said = [other for other in known if not other.columns and item.number in (other.instead or ())]
    return any(it.since is not None and came_after(window, it.since) for it in (item, *said))


def came_after(window: Window, instant: Instant) -> bool:
    """Return whether a window has only changes that came after an instant, as far as is known."""
    start = window.range.start_exclusive
    if window.kind is not WindowKind.LOAD or start is None:
        return False
    return start.id == instant.id or start.time > instant.time


def unfinished_erasures(storage: Storage, work: str) -> tuple[int, ...]:
    """Return the erasures that no report says to be done."""
    names = storage.list_names(layout.erasures_root(work))
    done = max(filter(None, map(layout.reported_erasure, names)), default=0)
    return tuple(number for number in _numbers(storage, work) if number > done)


def reports(storage: Storage, work: str) -> Iterator[ErasureReport]:
    """Read what was erased, by every call that left nothing.

    Raises:
        StateFileDamaged, StateFileLost: a report cannot be read.
    """
    root = layout.erasures_root(work)
    for name in filter(layout.reported_erasure, storage.list_names(root)):
        yield read_stored(storage, f"{root}/{name}", ErasureReport)


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
