"""Give the literals of a condition the types of the dates and times that they are compared with.

polars compares moments with moments only, and no date or time with a text. Here an ISO text is what
it says, and a time without a zone is one of UTC where it meets a moment.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import polars as pl

from tidegate.predicate.tree import (
    COMPARISONS,
    constants,
    expression_of,
    listed,
    tree_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_ISO = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d(:?\d\d)?)?)?", re.ASCII
)
"""Dates and times as far as microseconds say them."""
_DAY = len("2026-02-01")
_NANOSECONDS = (1678, 2262)
"""Years of which 64 bits hold every nanosecond; the last one is not among them."""
_OFFSET = re.compile(r"'\d{4}-\d\d-\d\d[T ][^']*[+-](?!00:?(00)?')\d\d(:?\d\d)?'", re.ASCII)
# Whole texts and names, so that nothing is taken for a literal inside one.
_TYPED = re.compile(
    r"(?P<name>\"(?:[^\"]|\"\")*\")"
    r"|(?P<before>\b(?:timestamp|datetime)\s*)?(?P<text>'(?:[^']|'')*')"
    r"(?P<after>\s*(?:::|\bas\b)\s*(?:timestamp|datetime)\b(?!\s*with\b))?",
    re.IGNORECASE,
)
_KIND = re.compile(r"timestamp|datetime", re.IGNORECASE)


def with_offsets(text: str) -> str:
    """Say of every literal with an offset from UTC that it has one, or polars would drop it.

    `timestamp '2026-02-01 00:00:00+02:00'` names a moment, whatever SQL calls it.
    """
    return _TYPED.sub(_with_offset, text)


def _with_offset(found: re.Match[str]) -> str:
    if found["name"] is not None or not _OFFSET.fullmatch(found["text"]):
        return found[0]
    before, after = (_KIND.sub("timestamptz", found[part] or "") for part in ("before", "after"))
    return f"{before}{found['text']}{after}"


def with_typed_literals(expression: pl.Expr, columns: pl.DataFrame) -> pl.Expr:
    """Give the condition that compares dates and times with dates and times.

    Args:
        expression: a condition on the columns.
        columns: without rows.

    Raises:
        pl.exceptions.PolarsError: a side of a comparison cannot be computed.
    """
    tree = tree_of(expression)
    typed = _typed(tree, columns)
    return expression if typed == tree else expression_of(typed)


def _typed(tree: Any, columns: pl.DataFrame) -> Any:
    if isinstance(tree, list):
        return [_typed(child, columns) for child in tree]
    if not isinstance(tree, dict) or "Literal" in tree:
        return tree
    made = {key: _typed(child, columns) for key, child in tree.items()}
    comparison, found = made.get("BinaryExpr"), listed(made)
    if comparison is not None and comparison["op"] in COMPARISONS:
        left, right = comparison["left"], comparison["right"]
        comparison["left"] = _literal(left, right, columns)
        comparison["right"] = _literal(right, left, columns)
    elif found is not None:
        made["Function"]["input"] = [found[0], _literal(found[1], found[0], columns, is_list=True)]
    return made


def _literal(tree: Any, other: Any, columns: pl.DataFrame, *, is_list: bool = False) -> Any:
    """Give one side of a comparison, typed as the other one if it is a literal."""
    values = constants(tree)
    if values is None or constants(other) is not None:
        return tree
    kind = columns.select(expression_of(other)).to_series().dtype
    if not isinstance(kind, pl.Date | pl.Datetime):
        return tree
    made = [_time(value, kind) for value in values.to_list()]
    times = [each for each in made if each is not None]
    if len(times) < len(made):
        return tree
    unit = _unit(times, kind)
    if is_list:
        found = pl.Series([times])
        return tree_of(pl.lit(found.cast(pl.List(unit)) if unit else found))
    return tree_of(pl.lit(times[0], dtype=unit))


def _time(value: Any, kind: pl.Date | pl.Datetime) -> date | None:
    """Give a date or time that compares with those of a column; None for what is neither."""
    if isinstance(value, str):
        value = _parsed(value)
        if isinstance(value, datetime) and value.tzinfo and _zone(kind) is None:
            # A wall clock has no offset.
            return None
    if not isinstance(value, date) or isinstance(kind, pl.Date):
        return value if isinstance(value, date) else None
    moment = value if isinstance(value, datetime) else datetime.combine(value, time())
    zone = _zone(kind)
    if zone is None:
        return moment
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(ZoneInfo(zone))


def _parsed(text: str) -> date | None:
    if not _ISO.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text) if len(text) > _DAY else date.fromisoformat(text)
    except ValueError:
        # No such day.
        return None


def _zone(kind: pl.Date | pl.Datetime) -> str | None:
    return kind.time_zone if isinstance(kind, pl.Datetime) else None


def _unit(times: Sequence[date], kind: pl.Date | pl.Datetime) -> pl.Datetime | None:
    """Say which type literals need besides that of Python's times.

    polars compares two units in the coarser one: nanoseconds would be cut off the column.
    """
    if not isinstance(kind, pl.Datetime) or kind.time_unit != "ns":
        return None
    return kind if all(_NANOSECONDS[0] <= each.year < _NANOSECONDS[1] for each in times) else None
