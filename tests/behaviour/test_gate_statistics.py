"""Which statistics a column has is what the gate itself makes of a few values of its type."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidegate.config import GateConfig
from tidegate.errors import SuiteInvalid
from tidegate.gate import GateInput, check, load_suite, suite_mistakes
from tidegate.gate.frame import seen, to_pandas
from tidegate.gate.library import PANDAS, run_expectations
from tidegate.gate.suite import Sees
from tidegate.model.partition import Partition
from tidegate.model.publication import Outcome, Verdict
from tidegate.target.schema import unified

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

DAY, MOMENT = date(2026, 2, 1), datetime(2026, 2, 1, 12)  # noqa: DTZ001
COLUMNS = {
    "int": pa.array([1, 2], pa.int64()),
    "unsigned": pa.array([1, 2], pa.uint8()),
    "float": pa.array([1.5, 2.0]),
    "decimal": pa.array([Decimal("1.10"), Decimal("2.20")], pa.decimal128(9, 2)),
    "boolean": pa.array([True, False]),
    "text": pa.array(["a", "b"]),
    "large text": pa.array(["a", "b"], pa.large_string()),
    "binary": pa.array([b"a", b"b"]),
    "fixed": pa.array([b"a", b"b"], pa.binary(1)),
    "date": pa.array([DAY, DAY]),
    "time of day": pa.array([time(1), time(2)], pa.time64("us")),
    "timestamp": pa.array([MOMENT, MOMENT], pa.timestamp("us")),
    "timestamp UTC": pa.array([MOMENT, MOMENT], pa.timestamp("us", "UTC")),
    "list": pa.array([[1], [2]]),
    "struct": pa.array([{"a": 1}, {"a": 2}]),
    "map": pa.array([[("a", 1)], [("b", 2)]], pa.map_(pa.string(), pa.int64())),
    "duration": pa.array([timedelta(1), timedelta(2)]),
    "nulls": pa.nulls(2),
}
NUMBER, OPEN = {"min_value": 0}, {}
CHECKS: dict[str, tuple[str, dict[str, Any]]] = {
    "mean": ("mean_to_be_between", NUMBER),
    "mean of any": ("mean_to_be_between", OPEN),
    "mean after": ("mean_to_be_between", {"min_value": "2026-01-01T00:00:00"}),
    "sum": ("sum_to_be_between", NUMBER),
    "sum of any": ("sum_to_be_between", OPEN),
    "stdev": ("stdev_to_be_between", NUMBER),
    "stdev of any": ("stdev_to_be_between", OPEN),
    "median": ("median_to_be_between", NUMBER),
    "median of any": ("median_to_be_between", OPEN),
    "quantiles": (
        "quantile_values_to_be_between",
        {"quantile_ranges": {"quantiles": [0.5], "value_ranges": [[0, 9]]}},
    ),
    "z-scores": ("value_z_scores_to_be_less_than", {"threshold": 3, "double_sided": True}),
    "bins": (
        "kl_divergence_to_be_less_than",
        {"partition_object": {"bins": [0, 1, 2, 3], "weights": [0.3, 0.3, 0.4]}, "threshold": 9},
    ),
    "categories": (
        "kl_divergence_to_be_less_than",
        {"partition_object": {"values": ["a", "b"], "weights": [0.5, 0.5]}, "threshold": 9},
    ),
    "least": ("min_to_be_between", NUMBER),
    "values": ("values_to_be_between", NUMBER),
    "length": ("value_lengths_to_be_between", {"min_value": 0}),
    "set": ("values_to_be_in_set", {"value_set": ["a"]}),
    "not null": ("values_to_not_be_null", {}),
    "distinct": ("unique_value_count_to_be_between", NUMBER),
    "unique": ("values_to_be_unique", {}),
}
STATISTICS = ("mean", "mean of any", "sum", "stdev", "stdev of any", "median", "median of any",
              "quantiles", "z-scores", "bins")  # fmt: skip


def judged(folder: Path, check: str, column: str) -> tuple[list[str], bool]:
    """Give what is said of a check without rows, and whether the gate can run it on two."""
    kind, keys = CHECKS[check]
    expectation = {"type": f"expect_column_{kind}", "kwargs": {"column": "x", **keys}}
    file = folder / "suite.json"
    file.write_text(json.dumps({"name": "s", "expectations": [expectation]}))
    suite, rows = load_suite(str(file)), pa.table({"x": COLUMNS[column]})

    def frame_of(form: Sees) -> Any:
        return to_pandas(rows.schema.empty_table()) if form is Sees.SCHEMA else seen(rows, form)

    found = [mistake.problem for mistake in suite_mistakes(suite, {"x": rows.schema.field(0).type})]
    try:
        run_expectations(suite, frame_of, PANDAS)
    except SuiteInvalid:
        return found, False
    return found, True


@pytest.mark.parametrize("column", COLUMNS)
def test_check_that_the_gate_runs_is_not_refused_before(tmp_path: Path, column: str) -> None:
    said = {check: judged(tmp_path, check, column) for check in CHECKS}

    assert {check: found for check, (found, runs) in said.items() if runs and found} == {}
    silent = [check for check in STATISTICS if not said[check][1] and not said[check][0]]
    assert silent == []


@pytest.mark.parametrize(
    ("check", "column", "problem"),
    [
        ("mean", "text", "column 'x' is of type string, of which there is no mean; use numbers"),
        ("stdev", "date", "of type date32[day], of which there is no standard deviation"),
        ("values", "timestamp", "`min_value`: expected a time, as 'x' is of type timestamp[us]"),
    ],
)
def test_mistake_names_the_type_and_what_it_lacks(
    tmp_path: Path, check: str, column: str, problem: str
) -> None:
    found, runs = judged(tmp_path, check, column)

    assert not runs
    assert problem in found[0]


@pytest.mark.parametrize(("check", "is_refused"), [("mean", True), ("sum", False)])
def test_sum_of_texts_is_left_to_spark_beside_a_query(
    tmp_path: Path, check: str, is_refused: bool
) -> None:
    kind, keys = CHECKS[check]
    query = {"unexpected_rows_query": "SELECT * FROM {batch} WHERE x IS NULL"}
    expectations = [
        {"type": f"expect_column_{kind}", "kwargs": {"column": "x", **keys}},
        {"type": "unexpected_rows_expectation", "kwargs": query},
    ]
    file = tmp_path / "suite.json"
    file.write_text(json.dumps({"name": "s", "expectations": expectations}))

    found = list(suite_mistakes(load_suite(str(file)), {"x": pa.string()}))

    assert bool(found) is is_refused


def quantiles(least: float, most: float) -> dict[str, Any]:
    return {"quantile_ranges": {"quantiles": [0.5], "value_ranges": [[least, most]]}}


def bins(threshold: float) -> dict[str, Any]:
    shares = {"bins": [0, 3, 6, 10], "weights": [0.5, 0.25, 0.25]}
    return {"partition_object": shares, "threshold": threshold}


def z_scores(threshold: float) -> dict[str, Any]:
    return {"threshold": threshold, "double_sided": True}


NOW = datetime(2026, 2, 1, tzinfo=UTC)
VALUES = (1, 2, 2, 5, 9)
HOLDS_AND_FAILS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "mean_to_be_between": ({"max_value": 3.8}, {"max_value": 3.7}),
    "sum_to_be_between": ({"max_value": 19}, {"max_value": 18}),
    "stdev_to_be_between": ({"max_value": 3.3}, {"max_value": 3.2}),
    "median_to_be_between": ({"max_value": 2}, {"max_value": 1}),
    "quantile_values_to_be_between": (quantiles(2, 2), quantiles(3, 9)),
    "value_z_scores_to_be_less_than": (z_scores(1.7), z_scores(1.5)),
    "kl_divergence_to_be_less_than": (bins(0.1), bins(0.001)),
    "min_to_be_between": ({"min_value": 1}, {"min_value": 2}),
    "max_to_be_between": ({"max_value": 9}, {"max_value": 8}),
    "unique_value_count_to_be_between": ({"max_value": 4}, {"max_value": 3}),
    "proportion_of_unique_values_to_be_between": ({"max_value": 0.8}, {"max_value": 0.7}),
    "most_common_value_to_be_in_set": ({"value_set": [2]}, {"value_set": [1]}),
    "distinct_values_to_be_in_set": ({"value_set": [1, 2, 5, 9]}, {"value_set": [1, 2, 5]}),
    "distinct_values_to_contain_set": ({"value_set": [1, 2]}, {"value_set": [3]}),
    "distinct_values_to_equal_set": ({"value_set": [1, 2, 5, 9]}, {"value_set": [1, 2]}),
}
"""Bounds beside what `VALUES` have: five numbers, with mean 3.8, deviation 3.27 and median 2."""


def verdict(folder: Path, kind: str, keys: dict[str, Any], values: pa.Array) -> Verdict:
    """Judge a partition with the values as its only column."""
    pq.write_table(pa.table({"x": values}), folder / "part.parquet")
    expectation = {"type": f"expect_column_{kind}", "kwargs": {"column": "x", **keys}}
    suite = folder / "suite.json"
    suite.write_text(json.dumps({"name": "s", "expectations": [expectation]}))
    content = GateInput(Partition(()), (str(folder / "part.parquet"),), unified)
    return check(load_suite(str(suite)), content, GateConfig(suite=str(suite)), NOW)[0]


@pytest.mark.parametrize("with_null", [False, True], ids=["no NULL", "with NULL"])
@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.decimal128(24, 2)], ids=str)
@pytest.mark.parametrize("statistic", HOLDS_AND_FAILS)
def test_bound_that_does_not_hold_holds_the_partition(
    tmp_path: Path, statistic: str, kind: pa.DataType, *, with_null: bool
) -> None:
    values = pa.array([*VALUES, *([None] if with_null else [])]).cast(kind)
    if with_null and statistic.startswith("proportion"):
        values = pa.array(VALUES).cast(kind)

    found = [verdict(tmp_path, statistic, keys, values) for keys in HOLDS_AND_FAILS[statistic]]

    assert [it.outcome for it in found] == [Outcome.PASS, Outcome.HOLD]


@pytest.mark.spark
@pytest.mark.parametrize("kind", [pa.int64(), pa.decimal128(24, 2)], ids=str)
def test_bound_that_does_not_hold_holds_the_partition_in_spark(
    tmp_path: Path, spark: SparkSession, kind: pa.DataType
) -> None:
    pq.write_table(pa.table({"x": pa.array([*VALUES]).cast(kind)}), tmp_path / "part.parquet")
    content = GateInput(Partition(()), (str(tmp_path / "part.parquet"),), unified)
    expectations = [
        {"type": f"expect_column_{name}", "kwargs": {"column": "x", **keys}}
        for name, both in HOLDS_AND_FAILS.items()
        for keys in both
    ]
    file = tmp_path / "suite.json"
    file.write_text(json.dumps({"name": "s", "expectations": expectations}))
    config = GateConfig(suite=str(file), pandas_limit=1)

    def frame(files: list[str], columns: list[str]) -> Any:
        return spark.read.parquet(*files).select(*columns)

    found = check(load_suite(str(file)), content, config, NOW, frame)[0]

    assert found.engine == "spark"
    assert [one.success for one in found.checks] == [True, False] * len(HOLDS_AND_FAILS)


@pytest.mark.parametrize("count", [0, 3])
@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.decimal128(24, 2)], ids=str)
def test_statistics_of_nothing_are_judged(tmp_path: Path, kind: pa.DataType, count: int) -> None:
    """Nothing has a sum and no outlier; all other bounds fail."""
    found = {
        statistic: verdict(tmp_path, statistic, keys, pa.nulls(count, kind)).outcome
        for statistic, (keys, _) in list(HOLDS_AND_FAILS.items())[:9]
    }

    passing = {statistic for statistic, outcome in found.items() if outcome is Outcome.PASS}
    assert passing == {"sum_to_be_between", "value_z_scores_to_be_less_than"}
