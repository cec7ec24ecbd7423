"""Read a local time out of text, by letters of Java's DateTimeFormatter or in Flink's own form.

Only numbers and literals are known, which is what occurs in partition values; text fields, zones
and optional sections are refused when the pipeline file is read. Results are Flink 2.2.1's where
`lenient` is set, and real dates and times otherwise (PC-T13–T15).
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LETTERS = {
    "y": "year",
    "u": "year",
    "M": "month",
    "d": "day",
    "H": "hour",
    "m": "minute",
    "s": "second",
    "S": "fraction",
}
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']|'")
_DATE = ("year", "month", "day")
_TIME = ("hour", "minute", "second", "fraction")
# PC-T13, as DefaultPartTimeExtractor builds it.
_PLAIN = re.compile(
    r"(?P<year>[0-9]{1,10})-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})"
    r"(?: (?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{1,2}):(?P<second>[0-9]{1,2})"
    r"(?:\.(?P<fraction>[0-9]{1,9}))?)?"
)


class TimeUnreadable(ValueError):
    """Text from which no time can be read; says why."""


@dataclass(frozen=True)
class TimeFormat:
    """A compiled formatter."""

    letters: str | None
    expression: re.Pattern[str]
    century: int = 0
    """What is added to the year: Java's `yy` counts from 2000."""

    @classmethod
    def compile(cls, letters: str | None) -> TimeFormat:
        """Compile formatter letters; None is Flink's own form (PC-T13).

        Raises:
            ValueError: a letter, or a combination, that this version does not read.
        """
        if letters is None:
            return cls(None, _PLAIN)
        parts: list[str] = []
        seen: list[str] = []
        open_ended = False
        tokens = _tokens(letters)
        for token in tokens:
            name = _LETTERS.get(token[0]) if not token.startswith("'") else None
            if name is None:
                parts.append(re.escape(_literal(token)))
                open_ended = False
                continue
            if name in seen:
                msg = f"'{letters}': the {name} occurs twice"
                raise ValueError(msg)
            digits, fixed = _digits(token)
            if open_ended and not fixed:
                msg = f"'{letters}': '{token}' stands right behind a number of open length"
                raise ValueError(msg)
            open_ended = not fixed or open_ended
            seen.append(name)
            parts.append(f"(?P<{name}>{digits})")
        _refuse_holes(letters, seen)
        century = 2000 if {"yy", "uu"} & set(tokens) else 0
        return cls(letters, re.compile("".join(parts)), century)

    def read(self, text: str, *, lenient: bool = False) -> datetime:
        """Read the local time.

        Raises:
            TimeUnreadable: the text has another form, or names no real date and time.
        """
        match = self.expression.fullmatch(text)
        if match is None:
            form = self.letters or "y-M-d H:m:s or y-M-d"
            msg = f"'{text}' is not of the form {form}"
            raise TimeUnreadable(msg)
        fields = {name: digits for name, digits in match.groupdict().items() if digits is not None}
        try:
            return self._resolve(fields, lenient=lenient)
        except (ValueError, OverflowError) as problem:
            msg = f"'{text}' is no real date and time: {problem}"
            raise TimeUnreadable(msg) from problem

    def write(self, local: datetime) -> str:
        """Return the text of a local time, whose numbers have as many digits as there are letters.

        Only for compiled letters; Flink's own form has two texts for one midnight.
        """
        return "".join(
            _literal(token) if token[0] not in _LETTERS else _number_text(token, local)
            for token in _tokens(self.letters or "")
        )

    def _resolve(self, fields: Mapping[str, str], *, lenient: bool) -> datetime:
        number = {name: int(digits) for name, digits in fields.items() if name != "fraction"}
        number["year"] += self.century
        micros = int(fields.get("fraction", "0").ljust(6, "0")[:6])
        if not lenient:
            return _exact(number, micros)
        if self.letters is None:
            return _overflowing(number, micros)
        return _clamped(number, micros)


def _tokens(letters: str) -> list[str]:
    tokens = []
    position = 0
    while position < len(letters):
        match = _TOKEN.match(letters, position)
        token = match.group() if match else ""
        if not token or token == "'":
            msg = f"'{letters}': a quote is not closed"
            raise ValueError(msg)
        if token in "[]{}#":
            msg = f"'{letters}': '{token}' cannot be used; optional parts are not read"
            raise ValueError(msg)
        if token[0].isalpha() and token[0] not in _LETTERS:
            msg = f"'{letters}': the letter '{token[0]}' is not read; known: {', '.join(_LETTERS)}"
            raise ValueError(msg)
        tokens.append(token)
        position += len(token)
    return tokens


def _literal(token: str) -> str:
    if not token.startswith("'"):
        return token
    return token[1:-1].replace("''", "'") or "'"


def _digits(token: str) -> tuple[str, bool]:
    """Return the expression for one run of a letter, and whether its length is fixed."""
    count = len(token)
    if token[0] in "yu":
        if count in {2, 4}:  # from four on, more digits would need a sign: no year of ours
            return f"[0-9]{{{count}}}", count == 2
        return f"[0-9]{{{count},19}}", False
    if token[0] == "S" and count <= 9:
        return f"[0-9]{{{count}}}", True
    if count > 2:
        msg = f"'{token}' is not read; the number has at most two digits"
        raise ValueError(msg)
    return ("[0-9]{1,19}", False) if count == 1 else ("[0-9]{2}", True)


def _number_text(token: str, local: datetime) -> str:
    count, name = len(token), _LETTERS[token[0]]
    if name == "fraction":
        return f"{local.microsecond:06d}".ljust(count, "0")[:count]
    if name == "year" and count == 2:
        return f"{local.year % 100:02d}"
    return f"{getattr(local, name):0{count}d}"


def _refuse_holes(letters: str, fields: Sequence[str]) -> None:
    """Check that a date is there, and a time of day without a hole, as Java needs them."""
    missing = [name for name in _DATE if name not in fields]
    if missing:
        msg = f"'{letters}' gives no {missing[0]}"
        if missing == ["day"]:
            msg += "; for months use the pattern '$key01' and 'yyyyMMdd'"
        raise ValueError(msg)
    given = [name for name in _TIME if name in fields]
    if given and given != list(_TIME[: len(given)]):
        msg = f"'{letters}' gives the {given[-1]}, but not every part of the time above it"
        raise ValueError(msg)


def _exact(number: Mapping[str, int], micros: int) -> datetime:
    return datetime(  # noqa: DTZ001 (local)
        number["year"],
        number["month"],
        number["day"],
        number.get("hour", 0),
        number.get("minute", 0),
        number.get("second", 0),
        micros,
    )


def _overflowing(number: Mapping[str, int], micros: int) -> datetime:
    months = number["month"] - 1
    start = datetime(number["year"] + months // 12, months % 12 + 1, 1)  # noqa: DTZ001 (local)
    return start + timedelta(
        days=number["day"] - 1,
        hours=number.get("hour", 0),
        minutes=number.get("minute", 0),
        seconds=number.get("second", 0),
        microseconds=micros,
    )


def _clamped(number: Mapping[str, int], micros: int) -> datetime:
    """Resolve as Java's SMART style: the day is cut to the month, 24:00 is the next day."""
    made = dict(number)
    below = made.get("minute", 0) or made.get("second", 0) or micros
    end_of_day = made.get("hour") == 24 and not below
    if end_of_day:
        made["hour"] = 0
    if made["day"] <= 31 and 1 <= made["month"] <= 12:
        made["day"] = min(made["day"], calendar.monthrange(made["year"], made["month"])[1])
    return _exact(made, micros) + timedelta(days=1 if end_of_day else 0)
