"""Read an expectation suite, and find the columns that it needs. Does not import the library."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidegate.config.words import suggest
from tidegate.errors import SuiteInvalid
from tidegate.model.wire import digest

if TYPE_CHECKING:
    from collections.abc import Mapping

CRITICAL = "critical"
_SEVERITIES = (CRITICAL, "warning", "info")
_SUITE_KEYS = ("name", "expectations", "id", "meta", "notes", "suite_parameters")
_EXPECTATION_KEYS = (
    "type", "kwargs", "severity", "meta", "notes", "description", "id", "rendered_content",
    "success_on_last_run",
)  # fmt: skip
_ONE_COLUMN = ("column", "column_A", "column_B")
_SCHEMA_ONLY = re.compile(r"expect_column_to_exist|expect_table_columns?_(count|to_match)_.*")
_AS_STORED = re.compile(
    r"expect_column_values_to_be_(of_type|in_type_list)"
    r"|expect_column_value_lengths_.*|expect_column_values_to_(not_)?match_.*"
    r"|expect_multicolumn_sum_to_equal"
)
_STATISTICS = re.compile(r"expect_column_(mean|sum|stdev|median)_.*")
_SORTED = re.compile(r"expect_column_(quantile_values|kl_divergence)_.*|.*_z_scores_.*")
_CONDITION_COLUMN = re.compile(r"""\bcol\(\s*["']([^"']+)["']\s*\)""")


class Sees(StrEnum):
    """The form of the rows that an expectation is checked on."""

    SCHEMA = "schema"
    """All columns, no row."""
    TYPES = "types"
    """The values as they are stored, for their types, their text and exact sums."""
    NUMBERS = "numbers"
    """All decimals as floats, for statistics."""
    FLOATS = "floats"
    """All decimals as floats, and whole numbers where one is NULL, for quantiles and the like."""
    ROWS = "rows"
    """Decimals as floats if the floats have all digits of all decimals."""


@dataclass(frozen=True)
class Expectation:
    """One check of the suite file."""

    type: str
    kwargs: Mapping[str, Any]
    severity: str
    meta: Mapping[str, Any]
    description: str | None = None

    @property
    def name(self) -> str:
        """In words: `expect_column_values_to_not_be_null(departed_at)`."""
        named = [str(self.kwargs[key]) for key in _ONE_COLUMN if key in self.kwargs]
        listed = self.kwargs.get("column_list") or self.kwargs.get("column_set")
        # The library refuses anything but a list, and this text names the check.
        columns = ", ".join([*named, *map(str, listed if isinstance(listed, list) else ())])
        return f"{self.type}({columns})" if columns else self.type

    @property
    def is_about_schema(self) -> bool:
        """Whether it only concerns the names of columns, so that no row has to be read."""
        return self.sees is Sees.SCHEMA

    @property
    def sees(self) -> Sees:
        """The form of the rows that it is checked on."""
        forms = {
            Sees.SCHEMA: _SCHEMA_ONLY,
            Sees.TYPES: _AS_STORED,
            Sees.NUMBERS: _STATISTICS,
            Sees.FLOATS: _SORTED,
        }
        found = (form for form, names in forms.items() if names.fullmatch(self.type))
        return next(found, Sees.ROWS)

    @property
    def needs_sql(self) -> bool:
        """Whether it is a query, which pandas cannot run."""
        return "unexpected_rows_query" in self.kwargs

    @property
    def columns(self) -> frozenset[str] | None:
        """The columns whose values it needs; None if that may be all of them."""
        if self.is_about_schema:
            return frozenset()
        named: set[str] = set()
        for key, given in self.kwargs.items():
            found = _columns_of(key, given)
            if found is None:
                return None
            named |= found
        return frozenset(named)


@dataclass(frozen=True)
class Suite:
    """All checks of one pipeline on one partition."""

    file: str
    name: str
    expectations: tuple[Expectation, ...]
    digest: str
    """The digest of the file's content, which identifies the suite in `gate.json`."""
    parameters: Mapping[str, Any]
    """The values of parameters, which expectations name as `{"$PARAMETER": name}`."""

    @property
    def columns(self) -> frozenset[str] | None:
        """The columns whose values the checks need; None: all columns of the table."""
        named: set[str] = set()
        for expectation in self.expectations:
            if expectation.columns is None:
                return None
            named |= expectation.columns
        return frozenset(named)

    @property
    def needs_sql(self) -> bool:
        """Whether a check can only run on Spark."""
        return any(expectation.needs_sql for expectation in self.expectations)


def load_suite(file: str) -> Suite:
    """Read a suite in the JSON form that Great Expectations itself writes.

    Args:
        file: path of the suite, as in `gate.suite` of the pipeline file.

    Raises:
        SuiteInvalid: the file does not exist, is not JSON, or is not a suite. Mistakes that only
            the library knows (an unknown type, a wrong argument) are found when the suite is run.
    """
    try:
        text = Path(file).read_text(encoding="utf-8")
    except OSError as refused:
        raise SuiteInvalid(suite=file, problem=f"cannot be read: {refused.strerror}") from refused
    except UnicodeDecodeError as refused:
        raise SuiteInvalid(suite=file, problem=f"expected UTF-8: {refused}") from refused
    try:
        raw = json.loads(text)
        found = digest(raw)
    except json.JSONDecodeError as broken:
        problem = f"line {broken.lineno}: no JSON: {broken.msg}"
        raise SuiteInvalid(suite=file, problem=problem) from broken
    except (ValueError, RecursionError) as broken:
        # Raised by surrogates, numbers of thousands of digits, and deeply nested brackets.
        raise SuiteInvalid(suite=file, problem=f"cannot be read: {broken}") from broken
    if not isinstance(raw, dict):
        raise SuiteInvalid(suite=file, problem="expected an object with `name` and `expectations`")
    _refuse_unknown(file, "the suite", raw, _SUITE_KEYS)
    name, listed = raw.get("name"), raw.get("expectations")
    if not isinstance(name, str) or not name:
        raise SuiteInvalid(suite=file, problem="expected `name`, a text that is not empty")
    if not isinstance(listed, list) or not listed:
        problem = "expected `expectations`, a list with at least one (a gate that checks nothing)"
        raise SuiteInvalid(suite=file, problem=problem)
    parameters = raw.get("suite_parameters") or {}
    if not isinstance(parameters, dict):
        problem = "expected `suite_parameters`, an object: name and value of each"
        raise SuiteInvalid(suite=file, problem=problem)
    expectations = tuple(
        _read_expectation(file, f"expectation {number}", item)
        for number, item in enumerate(listed, start=1)
    )
    return Suite(file, name, expectations, found, parameters)


def _read_expectation(file: str, place: str, raw: object) -> Expectation:
    if not isinstance(raw, dict):
        raise SuiteInvalid(suite=file, problem=f"{place}: expected an object with `type`, `kwargs`")
    _refuse_unknown(file, place, raw, _EXPECTATION_KEYS)
    kind, kwargs = raw.get("type"), raw.get("kwargs", {})
    if not isinstance(kind, str) or not kind:
        raise SuiteInvalid(suite=file, problem=f"{place}: expected `type`, for example "
                           "'expect_column_values_to_not_be_null'")  # fmt: skip
    if not isinstance(kwargs, dict):
        raise SuiteInvalid(suite=file, problem=f"{place} ({kind}): expected `kwargs`, an object")
    severity = raw.get("severity", CRITICAL)
    if severity not in _SEVERITIES:
        problem = (
            f"{place} ({kind}): unknown `severity` '{severity}'; "
            f"{suggest(str(severity), _SEVERITIES)}"
        )
        raise SuiteInvalid(suite=file, problem=problem)
    return Expectation(kind, kwargs, severity, raw.get("meta") or {}, raw.get("description"))


def _refuse_unknown(file: str, place: str, raw: Mapping[str, Any], known: tuple[str, ...]) -> None:
    # A misspelt `severity` would otherwise silently leave the check at its default.
    for key in raw:
        if key not in known:
            problem = f"{place}: unknown key '{key}'; {suggest(key, known)}"
            raise SuiteInvalid(suite=file, problem=problem)


def _columns_of(key: str, given: Any) -> set[str] | None:
    """Return the columns in one argument; None if they are unknown."""
    if key in _ONE_COLUMN:
        return {str(given)}
    if key == "column_list" and isinstance(given, list):
        return {str(column) for column in given}
    if key == "row_condition":
        return _columns_of_condition(given)
    if key.startswith("column") or key.endswith("query"):
        return None
    return set()


def _columns_of_condition(condition: Any) -> set[str] | None:
    if condition is None:
        return set()
    if isinstance(condition, str):
        # The library's own small language; a condition in another language may name anything.
        return set(_CONDITION_COLUMN.findall(condition)) or None
    if not isinstance(condition, dict):
        return None
    if "conditions" in condition:
        parts = [_columns_of_condition(part) for part in condition["conditions"]]
        return None if None in parts else set().union(*(part for part in parts if part))
    column = condition.get("column")
    return {str(column["name"])} if isinstance(column, dict) and "name" in column else None
