"""Find arguments of a check that the library accepts and that fail on rows."""

from __future__ import annotations

import re
from datetime import date
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.errors import SuiteInvalid
from tidegate.gate.statistics import has_numbers, is_text, missing_statistics

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tidegate.gate.suite import Expectation, Suite

_BOUNDS_ARE_VALUES = re.compile(r"expect_column_(values|min|max)_to_be_between")
_BOUNDS = ("min_value", "max_value")
_PATTERNS = ("regex", "regex_list")


def check_arguments(
    suite: Suite, expectation: Expectation, built: Any, types: Mapping[str, pa.DataType | None]
) -> None:
    """Check the patterns, bounds and statistics of one check.

    Args:
        suite: which has it.
        expectation: the check.
        built: the library's object for it, which has read bounds as numbers and times.
        types: of the table's columns, None where it is not known.

    Raises:
        SuiteInvalid: a pattern is no regular expression, a bound cannot be compared with the
            values of the column, or they do not have the statistic.
    """
    found = chain(
        _patterns(expectation),
        _bounds(expectation, built, types, needs_sql=suite.needs_sql),
        missing_statistics(expectation, built, types, needs_sql=suite.needs_sql),
    )
    problem = next(found, None)
    if problem is not None:
        raise SuiteInvalid(suite=suite.file, problem=f"{expectation.name}: {problem}")


def _patterns(expectation: Expectation) -> Iterator[str]:
    for key in _PATTERNS:
        said = expectation.kwargs.get(key)
        for pattern in said if isinstance(said, list) else [said]:
            problem = _broken(pattern) if isinstance(pattern, str) else None
            if problem:
                yield f"`{key}`: '{pattern}' is no regular expression: {problem}"


def _broken(pattern: str) -> str | None:
    """Return what is wrong with a pattern; Arrow and Python each know some that the other lacks."""
    try:
        re.compile(pattern)
    except re.error as broken:
        try:
            pc.match_substring_regex(pa.array([""]), pattern)
        except pa.ArrowInvalid:
            return str(broken)
    return None


def _bounds(
    expectation: Expectation,
    built: Any,
    types: Mapping[str, pa.DataType | None],
    *,
    needs_sql: bool,
) -> Iterator[str]:
    column = str(expectation.kwargs.get("column"))
    kind = types.get(column)
    if kind is None or not _BOUNDS_ARE_VALUES.fullmatch(expectation.type):
        return
    for key in _BOUNDS:
        bound = getattr(built, key, None)
        if is_text(kind) and isinstance(bound, float | int | date):
            yield (
                f"`{key}`: column '{column}' is of type {kind}, and numbers and times are all that "
                "is compared with bounds; use expect_column_values_to_match_regex"
            )
        elif has_numbers(kind) and isinstance(bound, date):
            yield f"`{key}`: expected a number, as '{column}' is of type {kind}, found {bound}"
        elif _has_times(kind) and isinstance(bound, float | int) and not needs_sql:
            yield f"`{key}`: expected a time, as '{column}' is of type {kind}, found {bound}"


def _has_times(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))
