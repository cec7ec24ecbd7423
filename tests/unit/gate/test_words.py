"""What a person reads of a check."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.gate.suite import Expectation
from tidegate.gate.words import expected, observed


def check_of(kind: str, **kwargs: Any) -> Expectation:
    return Expectation(kind, kwargs, "critical", {})


def rows(total: int, unexpected: int, missing: int | None = None) -> dict[str, Any]:
    result = {"element_count": total, "unexpected_count": unexpected}
    return {
        "success": True,
        "result": result if missing is None else {**result, "missing_count": missing},
    }


def value(found: Any, *, success: bool = True) -> dict[str, Any]:
    return {"success": success, "result": {"observed_value": found}}


NOT_NULL = "expect_column_values_to_not_be_null"


@pytest.mark.parametrize(
    ("check", "outcome", "asked", "found"),
    [
        pytest.param(
            check_of(NOT_NULL, column="a", mostly=0.8),
            rows(930, 472),
            "≥ 80.0 % not null",
            "49.2 % not null (458 of 930)",
            id="share",
        ),
        pytest.param(
            check_of(NOT_NULL, column="a"),
            rows(3000, 1),
            "100 % not null",
            "99.97 % not null (2,999 of 3,000)",
            id="nearly all is not all",
        ),
        pytest.param(
            check_of(NOT_NULL, column="a", mostly=0.9999),
            rows(10, 0),
            "≥ 99.99 % not null",
            "100.00 % not null (10 of 10)",
            id="bound near one",
        ),
        pytest.param(
            check_of("expect_column_values_to_be_between", min_value=0, max_value=100, mostly=0.5),
            rows(10, 2, missing=2),
            "≥ 50.0 % between 0 and 100",
            "75.0 % between 0 and 100 (6 of 8)",
            id="missing values do not count",
        ),
        pytest.param(
            check_of("expect_column_values_to_be_between", max_value=2.5, strict_max=True),
            rows(4, 1, missing=0),
            "100 % below 2.5",
            "75.0 % below 2.5 (3 of 4)",
            id="one strict bound",
        ),
        pytest.param(
            check_of("expect_column_value_lengths_to_equal", value=2),
            rows(4, 1, missing=0),
            "100 % value lengths 2",
            "75.0 % value lengths 2 (3 of 4)",
            id="property of the values",
        ),
        pytest.param(
            check_of("expect_column_values_to_be_in_set", value_set=list(range(10))),
            rows(1, 0, missing=0),
            "100 % in set [0, 1, 2, 3, 4, 5, 6, 7, and 2 more]",
            "100.0 % in set [0, 1, 2, 3, 4, 5, 6, 7, and 2 more] (1 of 1)",
            id="long list",
        ),
        pytest.param(
            check_of(NOT_NULL), rows(0, 0), "100 % not null", "no rows", id="empty partition"
        ),
        pytest.param(
            check_of("expect_column_values_to_be_unique"),
            rows(5, 0, missing=5),
            "100 % unique",
            "only missing values",
            id="all missing",
        ),
        pytest.param(
            check_of("expect_table_row_count_to_be_between", min_value=1000),
            value(930),
            "row count at least 1,000",
            "row count 930",
            id="row count",
        ),
        pytest.param(
            check_of("expect_table_row_count_to_equal", value=5),
            value(0),
            "row count 5",
            "row count 0",
            id="nothing",
        ),
        pytest.param(
            check_of("expect_column_mean_to_be_between", min_value=1, max_value=2, strict_min=True),
            value(1.23456789),
            "mean above 1 and at most 2",
            "mean 1.23457",
            id="aggregate",
        ),
        pytest.param(
            check_of("expect_column_max_to_be_between", max_value="2013-02-09"),
            value(None),
            "max at most 2013-02-09",
            "max none",
            id="aggregate of nothing",
        ),
        pytest.param(
            check_of("expect_column_distinct_values_to_be_in_set", value_set=["a"]),
            {"success": False, "result": {"partial_unexpected_list": ["b", None, True]}},
            "distinct values in set [a]",
            "unexpected [b, null, true]",
            id="values that should not be there",
        ),
        pytest.param(
            check_of("expect_column_quantile_values_to_be_between", quantile_ranges={"q": [0.5]}),
            value({"quantiles": [0.5], "values": [3]}),
            "quantile values between q [0.5]",
            "quantile values quantiles [0.5], values [3]",
            id="structured value",
        ),
        pytest.param(
            check_of("expect_column_to_exist", column="a"),
            {"success": False, "result": {}},
            "exist",
            "not as expected",
            id="name missing",
        ),
        pytest.param(
            check_of("expect_column_to_exist", column="a"),
            {"success": True, "result": {}},
            "exist",
            "as expected",
            id="name there",
        ),
        pytest.param(
            check_of("unexpected_rows_expectation", unexpected_rows_query="SELECT 1"),
            value(3),
            "unexpected rows 0",
            "unexpected rows 3",
            id="query",
        ),
    ],
)
def test_words_of_a_check_say_what_was_asked_and_found(
    check: Expectation, outcome: dict[str, Any], asked: str, found: str
) -> None:
    assert expected(check, outcome) == asked
    assert observed(check, outcome) == found


@given(total=st.integers(1, 10_000), percent=st.integers(1, 99), data=st.data())
def test_words_share_that_misses_its_bound_never_reads_like_it(
    total: int, percent: int, data: st.DataObject
) -> None:
    unexpected = data.draw(st.integers(0, total))
    check = check_of(NOT_NULL, mostly=percent / 100)

    said = observed(check, rows(total, unexpected)).split(" %")[0]

    reads_as_bound = float(said) == percent
    assert reads_as_bound == ((total - unexpected) * 100 == percent * total)
