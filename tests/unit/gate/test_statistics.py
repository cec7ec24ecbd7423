"""A statistic is refused for a type that has none; tests/behaviour has the gate as the judge."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from tidegate.gate import Expectation
from tidegate.gate.statistics import missing_statistics

MEAN, SUM = "expect_column_mean_to_be_between", "expect_column_sum_to_be_between"


def missing(
    kind: str, column: pa.DataType | None, *, needs_sql: bool = False, **keys: Any
) -> list[str]:
    expectation = Expectation(kind, {"column": "x", **keys}, "critical", {})
    built = SimpleNamespace(**keys)
    return list(missing_statistics(expectation, built, {"x": column}, needs_sql=needs_sql))


@pytest.mark.parametrize(
    ("kind", "column", "name"),
    [
        (MEAN, pa.string(), "mean"),
        (MEAN, pa.date32(), "mean"),
        (MEAN, pa.timestamp("us"), "mean"),
        (SUM, pa.string(), "sum"),
        (SUM, pa.timestamp("us"), "sum"),
        ("expect_column_stdev_to_be_between", pa.binary(), "standard deviation"),
        ("expect_column_value_z_scores_to_be_less_than", pa.string(), "z-scores"),
    ],
)
def test_statistic_of_a_type_without_it_is_named(kind: str, column: pa.DataType, name: str) -> None:
    (problem,) = missing(kind, column, min_value=0)

    assert problem == f"column 'x' is of type {column}, of which there is no {name}; use numbers"


@pytest.mark.parametrize(
    ("kind", "column", "keys"),
    [
        (MEAN, pa.int8(), {"min_value": 0}),
        (MEAN, pa.decimal128(9, 2), {"min_value": 0}),
        (MEAN, pa.timestamp("us"), {}),
        (MEAN, None, {"min_value": 0}),
        (SUM, pa.string(), {}),
        (SUM, pa.list_(pa.int64()), {"min_value": 0}),
        (SUM, pa.string(), {"min_value": 0, "needs_sql": True}),
        ("expect_column_values_to_not_be_null", pa.string(), {}),
    ],
)
def test_statistic_that_may_be_made_is_left_to_the_gate(
    kind: str, column: pa.DataType | None, keys: dict[str, Any]
) -> None:
    assert missing(kind, column, **keys) == []


def test_mean_of_texts_is_refused_on_spark_too() -> None:
    assert missing(MEAN, pa.string(), needs_sql=True, min_value=0)
