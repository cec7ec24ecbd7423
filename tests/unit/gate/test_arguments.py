"""Arguments that do not fit a column are found without a row of it."""

from __future__ import annotations

from datetime import date
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from tidegate.errors import SuiteInvalid
from tidegate.gate import Expectation, Suite
from tidegate.gate.arguments import check_arguments

DAY = date(2026, 2, 1)
TYPES = {
    "text": pa.string(),
    "number": pa.decimal128(9, 2),
    "time": pa.timestamp("us", "UTC"),
    "key": None,
}
BETWEEN = "expect_column_values_to_be_between"


def check(kind: str, **keys: Any) -> None:
    expectation = Expectation(kind, keys, "critical", {})
    suite = Suite("suite.json", "s", (expectation,), "0", {})
    check_arguments(suite, expectation, SimpleNamespace(**keys), TYPES)


@pytest.mark.parametrize(
    ("kind", "keys", "problem"),
    [
        (
            "expect_column_values_to_match_regex",
            {"column": "text", "regex": "(["},
            r"`regex`: '\(\[' is no regular",
        ),
        (
            "expect_column_values_to_not_match_regex_list",
            {"column": "text", "regex_list": ["a", "*"]},
            r"`regex_list`: '\*' is no regular",
        ),
        (BETWEEN, {"column": "text", "min_value": 1.0}, "`min_value`: column 'text' is of type"),
        (BETWEEN, {"column": "text", "max_value": DAY}, "`max_value`: column 'text' is of type"),
        (
            "expect_column_min_to_be_between",
            {"column": "number", "min_value": 0.0, "max_value": DAY},
            "`max_value`: expected a number",
        ),
    ],
    ids=["pattern", "one of several", "number", "time", "time for a number"],
)
def test_argument_that_fails_on_every_row_is_refused(
    kind: str, keys: dict[str, Any], problem: str
) -> None:
    with pytest.raises(SuiteInvalid, match=problem):
        check(kind, **keys)


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        (BETWEEN, {"column": "number", "min_value": 1.0, "max_value": None}),
        (BETWEEN, {"column": "time", "min_value": DAY}),
        (BETWEEN, {"column": "key", "min_value": 1.0}),
        ("expect_column_value_lengths_to_be_between", {"column": "text", "min_value": 1}),
        ("expect_column_values_to_match_regex", {"column": "text", "regex": "^(?=a)"}),
        ("expect_column_values_to_match_regex", {"column": "text", "regex": r"\p{L}"}),
        ("expect_table_row_count_to_be_between", {"min_value": 1}),
    ],
    ids=["number", "time", "key", "length", "Python's own", "Arrow's own", "rows"],
)
def test_argument_that_fits_is_accepted(kind: str, keys: dict[str, Any]) -> None:
    check(kind, **keys)
