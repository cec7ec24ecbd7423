"""End a window early at a limit of `source.limits`: between two instants, after at least one.

The volume of an instant is taken from the source's summaries; a single instant may exceed a limit
(ICE-5.11).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.model.instant import InstantRange
from tidegate.model.plan_record import LimitCut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tidegate.config import LimitsConfig
    from tidegate.model.instant import Instant
    from tidegate.model.volume import Volume

    Volumes = Callable[[Instant | None, Sequence[Instant]], Iterator[Volume] | None]
    """The volumes of instants after a checkpoint; None if they are read as one state."""


def within(volumes: Iterable[Volume], limits: LimitsConfig) -> tuple[int, str | None]:
    """Return the number of instants that one window takes.

    Args:
        volumes: of the instants in order; read only as far as needed.
        limits: the most that a window takes.

    Returns:
        The number, and the limit that ended the window; None if none did.
    """
    allowed = {key: limit for key, limit in limits.model_dump().items() if limit is not None}
    total = dict.fromkeys(("snapshots", "files", "bytes", "rows"), 0)
    taken = 0
    for volume in volumes:
        total["snapshots"] += 1
        total["files"] += volume.files
        total["bytes"] += volume.bytes
        total["rows"] += volume.rows
        passed = next((key for key in allowed if total[key] > allowed[key]), None)
        if passed is not None and taken:
            return taken, passed
        taken += 1
    return taken, None


def limited(
    found: InstantRange, instants: Sequence[Instant], volumes: Volumes, limits: LimitsConfig
) -> InstantRange:
    """Return as much of a range as the limits allow in one window.

    Args:
        found: what a run could take.
        instants: those of the range and later ones.
        volumes: returns the volumes of instants.
        limits: the pipeline's `source.limits`.
    """
    taken, limit = _taken(found.start_exclusive, instants, volumes, limits)
    end = [instant.id for instant in instants].index(found.end_inclusive.id)
    if limit is None or taken > end:
        return found
    return InstantRange(found.start_exclusive, instants[taken - 1])


def limit_cut(
    taken: InstantRange,
    retained: Callable[[], Sequence[Instant]],
    volumes: Volumes,
    limits: LimitsConfig,
) -> LimitCut | None:
    """Return the limit that ended a window, with the instants that were left; None without one.

    Args:
        taken: the window's range.
        retained: returns the instants up to the head, not only those after the range's start: a
            window may be resumed after its start was rolled back.
        volumes: returns the volumes of instants.
        limits: the pipeline's `source.limits`.
    """
    if not limits.model_dump(exclude_none=True):
        return None
    known = retained()
    places = {instant.id: place for place, instant in enumerate(known)}
    if taken.end_inclusive.id not in places:
        return None
    start = taken.start_exclusive
    first = places.get(start.id, -1) + 1 if start else 0
    instants = known[first:]
    count, limit = _taken(start, instants, volumes, limits)
    if limit is None or instants[count - 1].id != taken.end_inclusive.id:
        return None
    return LimitCut(limit, len(instants) - count)


def _taken(
    after: Instant | None,
    instants: Sequence[Instant],
    volumes: Volumes,
    limits: LimitsConfig,
) -> tuple[int, str | None]:
    if not limits.model_dump(exclude_none=True):
        return len(instants), None
    found = volumes(after, instants)
    return (len(instants), None) if found is None else within(found, limits)
