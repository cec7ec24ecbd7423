"""Find what is near to a name that was typed: partitions, and columns."""

from __future__ import annotations

import contextlib
import difflib
import math
from datetime import date, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidegate.model.partition import Partition


def nearest_first(typed: Partition, known: Iterable[Partition]) -> list[Partition]:
    """Sort partitions: few other values first, then by the distance of these, then by name.

    Dates and numbers are as far apart as they say, and texts as their letters differ.
    """
    return sorted(known, key=lambda item: (*_distance(typed, item), str(item)))


def listed_with_nearest(typed: str, known: Iterable[str]) -> str:
    """List known names, and add the one that is most like a name that was typed, if one is."""
    names = list(known)
    folded = {name.lower(): name for name in reversed(names)}
    near = difflib.get_close_matches(typed.lower(), folded, n=1)
    listed = ", ".join(names)
    return f"{listed}; the nearest is '{folded[near[0]]}'" if near else listed


def _distance(one: Partition, other: Partition) -> tuple[int, float]:
    pairs = zip(one.values, other.values, strict=False)
    apart = [_apart(first, second) for first, second in pairs if first != second]
    return len(apart), sum(apart)


def _apart(one: tuple[str, str | None], other: tuple[str, str | None]) -> float:
    (_, first), (_, second) = one, other
    numbers = _number(first), _number(second)
    if numbers[0] is not None and numbers[1] is not None:
        return abs(numbers[0] - numbers[1])
    return 1 - difflib.SequenceMatcher(None, first or "", second or "").ratio()


def _number(value: str | None) -> float | None:
    """Return a number, or the days of a date or time, as a number; None for other texts."""
    if value is None:
        return None
    with contextlib.suppress(ValueError):
        number = float(value)
        return number if math.isfinite(number) else None
    with contextlib.suppress(ValueError):
        return float(date.fromisoformat(value).toordinal())
    with contextlib.suppress(ValueError):
        moment = datetime.fromisoformat(value)
        return moment.toordinal() + moment.hour / 24 + moment.minute / 1440
    return None
