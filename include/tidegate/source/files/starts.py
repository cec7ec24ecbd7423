"""Resolve `source.start` to a listing (design §7). Opens no file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.errors import InstantNotFound
from tidegate.source.files.listing import number_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from tidegate.config import Start
    from tidegate.model.instant import Instant


def first_checkpoint(
    known: Sequence[Instant],
    moments: Callable[[], Sequence[Instant]],
    start: Start,
    source: str,
) -> Instant | None:
    """Return the listing before the first change that `start` selects; None: everything is read.

    Args:
        known: all listings up to the pinned one, in order.
        moments: returns the `cuts` of the pinned one; used only for a time, which selects the files
            that had arrived by then.
        start: the pipeline's `source.start`; its value is a listing's id, its number or an ISO
            time.
        source: the directory, for errors.

    Raises:
        InstantNotFound: the value is neither a listing nor a time with a zone.
    """
    if start.kind in {"full", "earliest"} or not known:
        return None
    if start.kind == "latest":
        return known[-1]
    text = str(start.value)
    inclusive = start.kind == "from"
    if start.time is not None:
        earlier = before_time(moments(), start.time, inclusive=not inclusive)
        return earlier[-1] if earlier else None
    for index, instant in enumerate(known):
        if text in {instant.id, str(number_of(instant))}:
            if not inclusive:
                return instant
            return known[index - 1] if index else None
    raise InstantNotFound(source=source, instant=text)


def before_time(known: Sequence[Instant], moment: datetime, *, inclusive: bool) -> list[Instant]:
    """Return the listings before a time, and at it if `inclusive`."""
    return [
        instant
        for instant in known
        if instant.time < moment or (inclusive and instant.time == moment)
    ]
