"""Format numbers, times and states for people."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from rich.text import Text

from tidegate.model.instant import local_time

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from tidegate.model.watermark import Evaluation

_STYLES = {
    "committed": "green",
    "unchanged": "green",
    "pending": "yellow",
    "late": "cyan",
    "changed": "cyan",
    "held": "bold red",
    "failed": "bold red",
}
_ASIDE = {
    "late-held": "held",
    "side": "below the late root",
    "late-proposed": "rejected",
    "late-rejected": "in quarantine",
    "undone": "undone",
}
MOST_LISTED = 10
"""More names than these are counted."""
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def count(number: int) -> str:
    """Return a number with separators."""
    return f"{number:,}"


def plural(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def numbered(noun: str, numbers: Sequence[str]) -> str:
    """Return a noun with the numbers that it has: `window 3`, `windows 3, 4`."""
    return f"{noun}{'' if len(numbers) == 1 else 's'} {', '.join(numbers)}"


def failing(rule: str, rows: int) -> str:
    """Return how many rows fail a rule: `1 fails sane`, `2,000 fail sane`."""
    return f"{count(rows)} {'fails' if rows == 1 else 'fail'} {rule}"


def aside(reason: str) -> str:
    """Return where rows are that are set aside for a reason."""
    return _ASIDE.get(reason, reason)


def all_aside(rows: Mapping[str, int] | None) -> str:
    """Return how many rows are set aside, for each reason: `2 held, 1 undone`."""
    return ", ".join(f"{count(number)} {aside(reason)}" for reason, number in (rows or {}).items())


def listed(names: Collection[object]) -> str:
    """Return some names, and how many there are if there are more."""
    shown = ", ".join(map(str, islice(names, MOST_LISTED)))
    if len(names) <= MOST_LISTED:
        return shown or "none"
    return f"{count(len(names))}: {shown} and {count(len(names) - MOST_LISTED)} more"


def size(number: int) -> str:
    """Return a size in the unit that leaves at most four digits."""
    amount = float(number)
    for unit in _UNITS:
        if amount < 1024 or unit == _UNITS[-1]:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    raise AssertionError


def moment(value: datetime | None, zone: str) -> str:
    """Return a time as wall clock time of a zone, with its offset, and seconds if there are any."""
    if value is None:
        return "–"
    local = local_time(value, ZoneInfo(zone))
    timespec = "seconds" if local.second or local.microsecond else "minutes"
    offset = "Z" if zone == "UTC" else f"{local:%z}"
    return f"{local.replace(tzinfo=None).isoformat(' ', timespec)}{offset}"


def state(name: str) -> Text:
    """Return a partition's state in its colour."""
    return Text(name, style=_STYLES.get(name, ""))


def why(evaluation: Evaluation | None) -> str:
    """Return why a partition is not published, and the error of the last attempt, if there is one.

    Empty if it may be committed.
    """
    if evaluation is None:
        return ""
    reason = evaluation.failing
    failed = f"failed {evaluation.failed}" if evaluation.failed else ""
    return "; ".join(filter(None, (reason, failed)))
