"""Read the words of a pipeline file: durations, sizes, names that may be misspelt."""

from __future__ import annotations

import difflib
import re
from datetime import timedelta
from typing import TYPE_CHECKING

from tidegate.model.partition_value import Interval

if TYPE_CHECKING:
    from collections.abc import Iterable

NOT_BUILT = "is not in this version of Tidegate"

_UNIT_SECONDS = {
    "ms": 0.001,
    "s": 1,
    "sec": 1,
    "second": 1,
    "m": 60,
    "min": 60,
    "minute": 60,
    "h": 3600,
    "hour": 3600,
    "d": 86400,
    "day": 86400,
    "w": 604800,
    "week": 604800,
}
_UNIT_BYTES = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_DURATION = re.compile(r"(?:\s*\d+(?:\.\d+)?\s*[a-z]+)+\s*")
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)")
_SIZE = re.compile(r"(\d[\d_]*(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_MONTHS = re.compile(r"(\d+)\s*months?")


class KeyProblem(ValueError):
    """What is wrong at a key that lies deeper than the model whose validator found it."""

    def __init__(self, problem: str, *, key: str) -> None:
        super().__init__(problem)
        self.key = key


class AmbiguousSide(ValueError):
    """A start that names an instant without saying whether that instant is read (ICE-2.12)."""

    def __init__(self, found: str, point: str) -> None:
        super().__init__(
            f"'{found}' does not say its side; write {{after: {point}}} or {{from: {point}}}"
        )


def suggest(found: str, known: Iterable[str]) -> str:
    """Name the nearest known word, or all of them where none is near."""
    names = list(known)
    near = difflib.get_close_matches(
        found.lower(), [name.lower() for name in names], n=1, cutoff=0.6
    )
    if near:
        original = next(name for name in names if name.lower() == near[0])
        return f"did you mean '{original}'?"
    return f"known: {', '.join(names)}"


def parse_duration(text: object) -> timedelta:
    """Read `15m`, `15 min`, `1 h 30 min`, `1d`, `0s`; a bare 0 needs no unit.

    Raises:
        ValueError: no duration, or a number without its unit.
    """
    if isinstance(text, timedelta):
        return text
    if isinstance(text, int | float) and not isinstance(text, bool):
        if text == 0:
            return timedelta(0)
        msg = f"expected a duration with its unit, found {text}; write '{text}s' or '{text}m'"
        raise ValueError(msg)
    plain = str(text).strip().lower()
    if not _DURATION.fullmatch(plain):
        msg = f"expected a duration such as '15m', '6 h' or '1d', found '{text}'"
        raise ValueError(msg)
    return timedelta(
        seconds=sum(float(amount) * _unit_seconds(unit) for amount, unit in _AMOUNT.findall(plain))
    )


def _unit_seconds(unit: str) -> float:
    known = _UNIT_SECONDS.get(unit) or _UNIT_SECONDS.get(unit.removesuffix("s"))
    if known is None:
        if unit in {"month", "months", "year", "years"}:
            msg = f"a {unit.removesuffix('s')} has no fixed length; write days"
        else:
            msg = f"unknown unit '{unit}'; known: ms, s, min, h, d, w"
        raise ValueError(msg)
    return known


def duration_text(duration: timedelta) -> str:
    """Write a duration in the largest unit that divides it: what `parse_duration` reads back."""
    microseconds = duration // timedelta(microseconds=1)
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        if microseconds % (size * 1_000_000) == 0 and (microseconds or unit == "s"):
            return f"{microseconds // (size * 1_000_000)}{unit}"
    return f"{microseconds / 1000:.3f}".rstrip("0").rstrip(".") + "ms"


def parse_size(text: object) -> int:
    """Read `128MiB`, `128 MB` or a number of bytes; K, M, G, T are powers of 1024, as in Flink.

    Raises:
        ValueError: no size.
    """
    if isinstance(text, int) and not isinstance(text, bool):
        return text
    match = _SIZE.fullmatch(str(text).strip())
    if not match:
        msg = f"expected a size such as '128MiB' or '64 KB', found '{text}'"
        raise ValueError(msg)
    return int(float(match.group(1).replace("_", "")) * _UNIT_BYTES[match.group(2).lower()])


def parse_interval(text: object) -> Interval:
    """Read the length of one partition: a duration, or calendar months as in `1 month`.

    Raises:
        ValueError: no interval, or one of length zero.
    """
    if isinstance(text, Interval):
        return text
    months = _MONTHS.fullmatch(str(text).strip().lower())
    interval = (
        Interval(months=int(months.group(1))) if months else Interval(span=parse_duration(text))
    )
    if interval == Interval():
        msg = "expected an interval longer than zero"
        raise ValueError(msg)
    return interval


def interval_text(interval: Interval) -> str:
    """Write an interval as `parse_interval` reads it."""
    return f"{interval.months} month" if interval.months else duration_text(interval.span)
