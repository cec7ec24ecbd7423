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
    from collections.abc import Mapping

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
_MOST = {"month": 12, "day": 31, "hour": 23, "minute": 59, "second": 59}
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
        for token in _tokens(letters):
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
        return cls(letters, re.compile("".join(parts)))

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
        missing = [name for name in ("year", "month", "day") if name not in fields]
        if missing:
            msg = f"'{self.letters}' gives no {missing[0]}"
            raise TimeUnreadable(msg)
        try:
            return self._resolve(fields, lenient=lenient)
        except (ValueError, OverflowError) as problem:
            msg = f"'{text}' is no real date and time: {problem}"
            raise TimeUnreadable(msg) from problem

    def _resolve(self, fields: Mapping[str, str], *, lenient: bool) -> datetime:
        number = {name: int(digits) for name, digits in fields.items() if name != "fraction"}
        if self.letters is not None and len(fields["year"]) == 2:
            number["year"] += 2000  # Java's `yy`; longer and shorter years stand for themselves
        micros = int(fields.get("fraction", "0").ljust(6, "0")[:6])
        if not lenient:
            return datetime(**_with_time(number), microsecond=micros)  # type: ignore[arg-type]  # noqa: DTZ001
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
    """Give the expression for one run of a letter, and whether its length is fixed."""
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


def _with_time(number: Mapping[str, int]) -> dict[str, int]:
    """Keep the time of day only where Java can build one: an hour, and no hole below it."""
    made = {name: number[name] for name in ("year", "month", "day")}
    for name in ("hour", "minute", "second"):
        if name not in number:
            break
        made[name] = number[name]
    return made


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
    made = _with_time(number)
    end_of_day = made.get("hour") == 24 and not made.get("minute") and not made.get("second")
    if end_of_day and not micros:
        made["hour"] = 0
    for name, most in _MOST.items():
        if name in number and made.get(name, number[name]) > most:
            msg = f"{name} {number[name]} is more than {most}"
            raise ValueError(msg)
    if made["day"] and made["month"]:
        made["day"] = min(made["day"], calendar.monthrange(made["year"], made["month"])[1])
    day_after = timedelta(days=1 if end_of_day and not micros else 0)
    return datetime(**made, microsecond=micros) + day_after  # type: ignore[arg-type]  # noqa: DTZ001
