"""Resolve `source.start` to a listing (design §7). Opens no file."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tidegate.errors import InstantNotFound
from tidegate.source.files.listing import number_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tidegate.config import Start
    from tidegate.model.instant import Instant


def first_checkpoint(
    known: Sequence[Instant],
    moments: Callable[[], Sequence[Instant]],
    start: Start,
    source: str,
) -> Instant | None:
    """Return the listing before the first change that `start` asks for; None reads everything.

    Args:
        known: all listings up to the pinned one, in order.
        moments: gives the pinned one's `cuts`, for a time alone: it stands for the files that had
            come by then.
        start: the pipeline's `source.start`; its value is a listing's id, its number or an ISO
            time.
        source: the directory, for errors.

    Raises:
        InstantNotFound: the value names no listing and is no time with a zone.
    """
    if start.kind in {"full", "earliest"} or not known:
        return None
    if start.kind == "latest":
        return known[-1]
    text = str(start.value)
    inclusive = start.kind == "from"
    if time_of(text):
        earlier = before_time(moments(), text, inclusive=not inclusive)
        return earlier[-1] if earlier else None
    for index, instant in enumerate(known):
        if text in {instant.id, str(number_of(instant))}:
            if not inclusive:
                return instant
            return known[index - 1] if index else None
    raise InstantNotFound(source=source, instant=text)


def before_time(known: Sequence[Instant], text: str, *, inclusive: bool) -> list[Instant]:
    """Return the listings before an ISO time, and at it if `inclusive`."""
    moment = time_of(text)
    return [
        instant
        for instant in known
        if moment and (instant.time < moment or (inclusive and instant.time == moment))
    ]


def time_of(text: str) -> datetime | None:
    """Read an ISO time that names its zone; None for any other text."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.astimezone(UTC) if moment.tzinfo else None
