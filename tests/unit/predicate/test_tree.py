"""Conditions are taken apart into what compares a column with constants, and what does more."""

from __future__ import annotations

from datetime import date
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.predicate.tree import (
    constants,
    expression_of,
    is_plain,
    listed,
    nodes,
    parsed_text,
    tree_of,
)

FRAME = pl.DataFrame({"a": [1, 2, None], "s": ["x", None, "1"]})
PLAIN = [
    "a = 1",
    "1 < a",
    "a is null",
    "not (a is not null)",
    "a in (1, 2)",
    "a not in (1, 2)",
    "a = 1 and (s = 'x' or a >= 2)",
    "a between 1 and 2",
    "a is distinct from 1",
]
MORE = [
    "a + 1 = 2",
    "upper(s) = 'X'",
    "a = a",
    "s like 'x%'",
    "a = length(s)",
    "length(s) in (1)",
    "cast(a as boolean)",
]


def _tree(text: str) -> Any:
    return tree_of(pl.sql_expr(text))


@pytest.mark.parametrize("text", PLAIN)
def test_condition_that_only_compares_columns_with_constants_is_plain(text: str) -> None:
    assert is_plain(_tree(text))


@pytest.mark.parametrize("text", MORE)
def test_condition_that_does_more_is_not_plain(text: str) -> None:
    assert not is_plain(_tree(text))
    assert not is_plain(_tree(f"a = 1 or {text}"))
    assert not is_plain(_tree(f"not ({text})"))


def test_arithmetic_is_no_comparison() -> None:
    assert not is_plain(tree_of(pl.col("a") + 1))


@pytest.mark.parametrize("text", PLAIN + MORE)
def test_expression_of_a_tree_means_the_same(text: str) -> None:
    again = expression_of(_tree(text))

    assert FRAME.select(again).equals(FRAME.select(pl.sql_expr(text)))


@given(
    st.integers(-(2**63), 2**63 - 1)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.booleans()
    | st.dates(date(1900, 1, 1), date(2200, 1, 1))
)
def test_literal_stands_for_its_value(value: Any) -> None:
    found = constants(tree_of(pl.lit(value)))

    assert found is not None
    assert found.to_list() == [value]


def test_list_stands_for_all_its_values() -> None:
    found = listed(_tree("a in (3, 1, 2)"))

    assert found is not None
    column, values = found
    assert column == tree_of(pl.col("a"))
    series = constants(values)
    assert series is not None
    assert series.to_list() == [3, 1, 2]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("cast('7' as int)", [7]), ("date '2026-02-01'", [date(2026, 2, 1)])],
)
def test_literal_that_is_cast_stands_for_what_it_becomes(text: str, expected: list[Any]) -> None:
    found = constants(_tree(text))

    assert found is not None
    assert found.to_list() == expected


@pytest.mark.parametrize("text", ["a", "a + 1", "cast(a as int)", "cast('x' as int)", "length(s)"])
def test_what_has_no_value_before_rows_are_read_is_no_constant(text: str) -> None:
    assert constants(_tree(text)) is None


@pytest.mark.parametrize("text", ["a = 1", "a is null", "a", "upper(s)"])
def test_other_nodes_are_no_list(text: str) -> None:
    assert listed(_tree(text)) is None


def test_text_of_a_time_is_found_below_its_casts() -> None:
    text = "2026-02-01 00:00:00"
    parsed = pl.lit(text).str.strptime(pl.Datetime("us"), "%Y-%m-%d %H:%M:%S")

    assert parsed_text(tree_of(parsed)) == text
    assert parsed_text(tree_of(parsed.cast(pl.Datetime("ns")))) == text
    assert parsed_text(tree_of(pl.lit(text))) is None


def test_nodes_name_the_structure_and_no_text_of_the_user() -> None:
    found = set(nodes(_tree("Function = 'IsIn'")))

    assert "BinaryExpr" in found
    assert not {"Function", "IsIn"} & found
