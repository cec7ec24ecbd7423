"""Recognize whole numbers that are times of another unit than the one they are read in."""

from __future__ import annotations

from datetime import UTC, datetime

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_FIRST, _LAST = 1980, 2100
"""Times of rows outside of these years are taken for a mistake …"""
_LIKELY_FIRST = 1990
"""… if another unit makes times of them from this year on."""


def other_unit(largest: int, unit: str) -> str | None:
    """Return the unit in which a column's largest number is a likely time.

    Args:
        largest: the number, counted since 1970.
        unit: in which it is read: `s`, `ms`, `us` or `ns`.

    Returns:
        The unit; None if the number is no odd time as it is read, or is one in every unit.
    """
    if _seconds(_FIRST) <= largest / _PER_SECOND[unit] < _seconds(_LAST):
        return None
    likely = (
        other
        for other, each in _PER_SECOND.items()
        if _seconds(_LIKELY_FIRST) <= largest / each < _seconds(_LAST)
    )
    return next(likely, None)


def count_of(moment: datetime, unit: str) -> int:
    """Return the number whose time is a moment."""
    passed = moment - datetime(1970, 1, 1, tzinfo=UTC)
    microseconds = (passed.days * 86_400 + passed.seconds) * 10**6 + passed.microseconds
    return microseconds * _PER_SECOND[unit] // 10**6


def time_of(count: int, unit: str) -> datetime:
    """Return the time of a number, without what is below a second."""
    return datetime.fromtimestamp(count // _PER_SECOND[unit], UTC)


def _seconds(year: int) -> float:
    return datetime(year, 1, 1, tzinfo=UTC).timestamp()
