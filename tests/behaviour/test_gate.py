"""The gate on real Parquet files with the real library; pandas and Spark must say the same."""

from __future__ import annotations

import functools
import json
import os
import sys
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from small_lake import DAY_1, SmallLake, load, local, publish
from tidegate.config import GateConfig, load_pipeline
from tidegate.demo.expected import flights_per_day
from tidegate.demo.flights import Flight, read_flights
from tidegate.errors import ColumnTypesDiffer, ContentUnreadable, SuiteInvalid
from tidegate.execute import frames
from tidegate.gate import GateInput, check, load_suite
from tidegate.gate.content import empty_footers, read_footers
from tidegate.gate.frame import in_spark
from tidegate.model.partition import Partition
from tidegate.model.publication import Outcome, Verdict
from tidegate.model.run import Run
from tidegate.target.schema import unified

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tidegate.gate import SparkFrame, Suite
    from tidegate.pipeline import Pipeline

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
FLIGHTS = Path(__file__).parents[2] / "include" / "pipelines" / "flights.yaml"
DAY = Partition((("dt", "2013-02-08"),))


def suite_of(folder: Path, *expectations: dict[str, Any]) -> Suite:
    file = folder / "suite.json"
    file.write_text(json.dumps({"name": "flights", "expectations": list(expectations)}))
    return load_suite(str(file))


def not_null(column: str, mostly: float = 1, severity: str = "critical") -> dict[str, Any]:
    return {
        "type": "expect_column_values_to_not_be_null",
        "kwargs": {"column": column, "mostly": mostly},
        "severity": severity,
    }


def departures(rows: int, departed: int) -> pa.Table:
    moment = datetime(2013, 2, 8, 12, tzinfo=UTC)
    times = [moment + timedelta(minutes=n) if n < departed else None for n in range(rows)]
    return pa.table(
        {
            "departed_at": pa.array(times, pa.timestamp("us", "UTC")),
            "flight": pa.array(range(rows), pa.int32()),
            "carrier": pa.array(["US"] * rows, pa.string()),
        }
    )


def content_of(folder: Path, *tables: pa.Table, partition: Partition = DAY) -> GateInput:
    paths = []
    for number, table in enumerate(tables):
        path = folder / f"part-{number}.zstd.parquet"
        pq.write_table(table, path, compression="zstd")
        paths.append(str(path))
    return GateInput(partition, tuple(paths), unified)


def judge(suite: Suite, content: GateInput, **settings: Any) -> Verdict:
    return check(suite, content, GateConfig(suite=suite.file, **settings), NOW)[0]


def spark_frame_of(session: SparkSession) -> SparkFrame:
    def frame(files: list[str], columns: list[str]) -> DataFrame:
        return session.read.option("mergeSchema", "true").parquet(*files).select(*columns)

    return frame


def test_verdict_enough_departed_passes(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, not_null("departed_at", 0.8))

    verdict = judge(suite, content_of(tmp_path, departures(100, 91)))

    assert verdict.outcome is Outcome.PASS
    assert (verdict.rows, verdict.engine, verdict.checked_at) == (100, "pandas", NOW)


def test_verdict_share_at_its_bound_passes(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, not_null("departed_at", 0.8))

    at = judge(suite, content_of(tmp_path, departures(100, 80)))
    below = judge(suite, content_of(tmp_path, departures(100, 79)))

    assert (at.outcome, below.outcome) == (Outcome.PASS, Outcome.HOLD)


@pytest.mark.parametrize("on_failure", ["hold", "warn", "fail"])
def test_verdict_critical_failure_becomes_what_the_pipeline_says(
    tmp_path: Path, on_failure: str
) -> None:
    suite = suite_of(tmp_path, not_null("departed_at", 0.8))

    verdict = judge(suite, content_of(tmp_path, departures(930, 458)), on_failure=on_failure)

    assert verdict.outcome.value == on_failure


@pytest.mark.parametrize(
    ("severity", "outcome"), [("warning", Outcome.WARN), ("info", Outcome.PASS)]
)
def test_verdict_failure_that_is_not_critical_lets_the_partition_out(
    tmp_path: Path, severity: str, outcome: Outcome
) -> None:
    suite = suite_of(tmp_path, not_null("flight"), not_null("departed_at", 0.8, severity))

    verdict = judge(suite, content_of(tmp_path, departures(10, 1)))

    assert verdict.outcome is outcome
    assert [item.success for item in verdict.checks] == [True, False]


def test_verdict_failed_share_says_what_was_seen_and_what_was_asked(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, not_null("departed_at", 0.8))

    failure = judge(suite, content_of(tmp_path, departures(930, 458))).failures[0]

    assert failure.name == "expect_column_values_to_not_be_null(departed_at)"
    assert failure.observed == "49.2 % not null (458 of 930)"
    assert failure.expected == "≥ 80.0 % not null"


def test_verdict_files_of_several_windows_judges_them_together(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, not_null("departed_at", 0.8))

    verdict = judge(suite, content_of(tmp_path, departures(10, 10), departures(10, 7)))

    assert verdict.outcome is Outcome.PASS
    assert verdict.checks[0].observed == "85.0 % not null (17 of 20)"


def test_verdict_column_missing_in_an_older_file_counts_as_null_there(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, not_null("departed_at", 0.8))
    older = departures(10, 10).drop_columns(["departed_at"])

    verdict = judge(suite, content_of(tmp_path, older, departures(10, 10)))

    assert verdict.checks[0].observed == "50.0 % not null (10 of 20)"


def test_verdict_null_heavy_integers_keep_every_digit(tmp_path: Path) -> None:
    big = 2**60
    table = pa.table({"id": pa.array([big, None, big + 1, None, None], pa.int64())})
    suite = suite_of(
        tmp_path, {"type": "expect_column_values_to_be_unique", "kwargs": {"column": "id"}}
    )

    verdict = judge(suite, content_of(tmp_path, table))

    assert verdict.outcome is Outcome.PASS
    assert verdict.checks[0].observed == "100.0 % unique (2 of 2)"


def test_verdict_empty_partition_fails_only_what_asks_for_rows(tmp_path: Path) -> None:
    suite = suite_of(
        tmp_path,
        not_null("departed_at", 0.8),
        {"type": "expect_table_row_count_to_be_between", "kwargs": {"min_value": 1}},
    )

    without_rows = judge(suite, content_of(tmp_path, departures(0, 0)))
    without_files = judge(suite, GateInput(DAY, (), unified))

    assert without_rows.checks == without_files.checks
    assert [item.observed for item in without_rows.checks] == ["no rows", "row count 0"]
    assert without_rows.outcome is without_files.outcome is Outcome.HOLD


def test_verdict_partition_value_is_a_column_like_any_other(tmp_path: Path) -> None:
    suite = suite_of(
        tmp_path,
        {
            "type": "expect_column_values_to_be_in_set",
            "kwargs": {"column": "dt", "value_set": ["2013-02-08"]},
        },
    )
    content = content_of(tmp_path, departures(3, 3))
    default = GateInput(Partition((("dt", None),)), content.files, unified)

    assert judge(suite, content).checks[0].observed == "100.0 % in set [2013-02-08] (3 of 3)"
    assert judge(suite, default).checks[0].observed == "only missing values"


def test_verdict_checks_on_names_see_every_column_without_reading_one(tmp_path: Path) -> None:
    names = ["departed_at", "flight", "carrier", "dt"]
    suite = suite_of(
        tmp_path,
        {
            "type": "expect_table_columns_to_match_ordered_list",
            "kwargs": {"column_list": names},
        },
        {"type": "expect_table_row_count_to_equal", "kwargs": {"value": 4}},
        {"type": "expect_column_to_exist", "kwargs": {"column": "gate"}, "severity": "warning"},
    )
    content = content_of(tmp_path, departures(4, 4))

    verdict, record = check(suite, content, GateConfig(suite=suite.file), NOW)

    assert [item.success for item in verdict.checks] == [True, True, False]
    assert record["columns"] == []


def test_check_other_columns_damaged_reads_only_what_the_suite_names(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, not_null("departed_at", 0.8))
    content = content_of(tmp_path, departures(1000, 900))
    damage(content.files[0], "flight")

    verdict, record = check(suite, content, GateConfig(suite=suite.file), NOW)

    assert verdict.outcome is Outcome.PASS
    assert record["columns"] == ["departed_at"]
    with pytest.raises(OSError):  # noqa: PT011 (what it says depends on the bytes)
        pq.read_table(content.files[0], columns=["flight"], partitioning=None)


def damage(path: str, column: str) -> None:
    """Overwrite one column chunk with zeros, leaving the footer whole."""
    group = pq.read_metadata(path).row_group(0)
    chunks = {group.column(n).path_in_schema: group.column(n) for n in range(group.num_columns)}
    chunk = chunks[column]
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    with Path(path).open("r+b") as file:
        file.seek(start)
        file.write(bytes(chunk.total_compressed_size))


def test_check_condition_on_rows_reads_its_column_too(tmp_path: Path) -> None:
    by_text = {"row_condition": 'col("flight") < 5', "condition_parser": "great_expectations"}
    by_object = {
        "row_condition": {
            "type": "comparison",
            "column": {"name": "flight"},
            "operator": "<",
            "parameter": 5,
        }
    }
    content = content_of(tmp_path, departures(10, 5))
    for condition in (by_text, by_object):
        expectation = not_null("departed_at")
        expectation["kwargs"].update(condition)
        suite = suite_of(tmp_path, expectation)

        verdict, record = check(suite, content, GateConfig(suite=suite.file), NOW)

        assert record["columns"] == ["departed_at", "flight"]
        assert verdict.checks[0].observed == "100.0 % not null (5 of 5)"


def test_check_without_suite_passes_and_counts_rows(tmp_path: Path) -> None:
    verdict, record = check(None, content_of(tmp_path, departures(7, 0)), None, NOW)

    assert verdict == Verdict(Outcome.PASS, (), 7, "none", NOW)
    assert (record["outcome"], record["rows"], record["engine"]) == ("pass", 7, "none")


def test_check_record_is_strict_json_and_tells_what_judged(tmp_path: Path) -> None:
    suite = suite_of(
        tmp_path,
        not_null("departed_at", 0.8),
        {
            "type": "expect_column_mean_to_be_between",
            "kwargs": {"column": "flight", "max_value": 3},
            "severity": "warning",
        },
    )
    content = content_of(tmp_path, departures(0, 0))

    verdict, record = check(suite, content, GateConfig(suite=suite.file), NOW)

    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert record["partition"] == "dt=2013-02-08"
    assert record["suite"]["digest"] == suite.digest
    assert record["library"].startswith("great-expectations ")
    assert [item["observed"] for item in record["checks"]] == [
        item.observed for item in verdict.checks
    ]
    assert [one["expectation_config"]["type"] for one in record["results"]] == [
        item.type for item in suite.expectations
    ]


def test_check_changes_nothing_on_disk(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, not_null("departed_at", 0.8))
    content = content_of(tmp_path, departures(3, 3))
    judge(suite, content)  # the import itself may write byte code
    changed: list[str] = []

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        # A hook cannot be taken back: it listens only while this test's list is bound.
        if watching and event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link"):
            changed.append(f"{event} {arguments[0]}")
        if watching and event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR):
            changed.append(f"open {arguments[0]}")

    watching = True
    sys.addaudithook(watch)
    judge(suite, content)
    watching = False

    assert changed == []


@pytest.mark.parametrize(
    ("expectation", "said"),
    [
        pytest.param(not_null("departed"), "did you mean 'departed_at'", id="column missing"),
        pytest.param(
            {"type": "expect_the_best", "kwargs": {}},
            "expect_the_best: the library does not know it",
            id="unknown",
        ),
        pytest.param(
            {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "flight", "x": 1}},
            "unknown argument `x`",
            id="argument unknown",
        ),
        pytest.param(
            {
                "type": "expect_column_values_to_be_between",
                "kwargs": {"column": "carrier", "min_value": 3},
            },
            "could not be run",
            id="fails while running",
        ),
        pytest.param(
            {
                "type": "expect_column_values_to_be_between",
                "kwargs": {"column": "flight", "min_value": {"$PARAMETER": "lowest"}},
            },
            "lowest; `suite_parameters` gives none",
            id="parameter without a value",
        ),
        pytest.param(
            {"type": "expect_table_columns_to_match_set", "kwargs": {"column_set": 5}},
            "expectation 2, expect_table_columns_to_match_set: .*not a valid list",
            id="columns that are no list",
        ),
        pytest.param(
            {
                "type": "unexpected_rows_expectation",
                "kwargs": {"unexpected_rows_query": "SELECT * FROM {batch} WHERE flight < 0"},
            },
            "needs Spark",
            id="query without spark",
        ),
    ],
)
def test_check_unusable_expectation_is_an_error_not_a_pass(
    tmp_path: Path, expectation: dict[str, Any], said: str
) -> None:
    suite = suite_of(tmp_path, not_null("flight"), expectation)

    with pytest.raises(SuiteInvalid, match=said) as caught:
        judge(suite, content_of(tmp_path, departures(3, 3)))

    assert caught.value.suite == suite.file


@pytest.mark.parametrize(("lowest", "success"), [(0, True), (1, False)])
def test_check_parameters_of_the_suite_reach_the_expectation(
    tmp_path: Path, lowest: int, success: bool
) -> None:
    kwargs = {"column": "flight", "min_value": {"$PARAMETER": "lowest"}}
    raw = {
        "name": "flights",
        "suite_parameters": {"lowest": lowest},
        "expectations": [{"type": "expect_column_values_to_be_between", "kwargs": kwargs}],
    }
    file = tmp_path / "suite.json"
    file.write_text(json.dumps(raw))

    verdict = judge(load_suite(str(file)), content_of(tmp_path, departures(3, 3)))

    assert [check.success for check in verdict.checks] == [success]


def test_check_damaged_or_missing_file_names_it(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, not_null("flight"))
    truncated = tmp_path / "truncated.parquet"
    truncated.write_bytes(b"PAR1 and no more")
    for path in (str(truncated), str(tmp_path / "gone.parquet")):
        with pytest.raises(ContentUnreadable) as caught:
            judge(suite, GateInput(DAY, (path,), unified))

        assert caught.value.path == path


def test_check_column_changed_its_type_names_the_file(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, not_null("flight"))
    other = departures(3, 3).set_column(1, "flight", pa.array(["1", "2", "3"]))
    content = content_of(tmp_path, departures(3, 3), other)

    with pytest.raises(ColumnTypesDiffer, match="flight") as caught:
        judge(suite, content)

    assert (caught.value.file, caught.value.other_file) == (content.files[1], content.files[0])


def widened(folder: Path) -> GateInput:
    """Give a partition whose late file has widened, new and dropped columns."""
    older = departures(100, 90).append_column("delay", pa.array([0.5] * 100, pa.float32()))
    days = pa.array([date(2013, 2, 8)] * 100, pa.date32())
    older = older.append_column("planned", days)
    older = older.append_column("plane", pa.array([{"seats": 9}] * 100, SEATS))
    flights = pa.array([2**40 + n for n in range(10)], pa.int64())
    newer = departures(10, 5).set_column(1, "flight", flights).drop_columns(["carrier"])
    newer = newer.append_column("delay", pa.array([0.25] * 10, pa.float64()))
    newer = newer.append_column("gate", pa.array(["A1"] * 10))
    moments = pa.array([datetime(2013, 2, 8, 5)] * 10, pa.timestamp("us"))  # noqa: DTZ001
    newer = newer.append_column("planned", moments)
    planes = pa.array([{"seats": 2**40, "tail": "N1"}] * 10, SEATS_AND_TAIL)
    return content_of(folder, older, newer.append_column("plane", planes))


SEATS = pa.struct([("seats", pa.int32())])
SEATS_AND_TAIL = pa.struct([("seats", pa.int64()), ("tail", pa.string())])


def between(column: str, least: float, most: float) -> dict[str, Any]:
    kwargs = {"column": column, "min_value": least, "max_value": most}
    return {"type": "expect_column_values_to_be_between", "kwargs": kwargs, "severity": "critical"}


WIDENED = [
    between("flight", 0, 2**40 + 9),
    between("delay", 0.25, 0.5),
    {"type": "expect_column_values_to_be_unique", "kwargs": {"column": "flight"}},
    not_null("carrier", 100 / 110),
    not_null("gate", 10 / 110),
    not_null("plane"),
    {"type": "expect_column_unique_value_count_to_be_between",
     "kwargs": {"column": "planned", "min_value": 2, "max_value": 2}},
]  # fmt: skip


def test_verdict_over_a_widened_column_sees_old_and_late_rows(tmp_path: Path) -> None:
    total = sum(range(100)) + sum(2**40 + n for n in range(10))
    kwargs = {"column": "flight", "min_value": total, "max_value": total}
    whole = {"type": "expect_column_sum_to_be_between", "kwargs": kwargs, "severity": "critical"}
    suite = suite_of(tmp_path, *WIDENED, whole)

    verdict = judge(suite, widened(tmp_path))

    assert (verdict.outcome, verdict.rows) == (Outcome.PASS, 110)
    assert judge(suite_of(tmp_path, not_null("gate", 11 / 110)), widened(tmp_path)).outcome is (
        Outcome.HOLD
    )


@pytest.mark.spark
def test_verdict_over_a_widened_column_is_the_same_in_spark(
    tmp_path: Path, spark: SparkSession
) -> None:
    suite = suite_of(tmp_path, *WIDENED, not_null("gate", 11 / 110, "warning"))
    content = widened(tmp_path)

    by_pandas, _ = check(suite, content, GateConfig(suite=suite.file), NOW)
    large = GateConfig(suite=suite.file, pandas_limit=1)
    by_spark, _ = check(suite, content, large, NOW, spark_frame_of(spark))

    assert (by_pandas.engine, by_spark.engine) == ("pandas", "spark")
    assert by_spark.checks == by_pandas.checks
    assert by_spark.outcome is by_pandas.outcome is Outcome.WARN


@pytest.mark.parametrize("limit_below", [True, False], ids=["limit below", "limit at the size"])
def test_check_size_at_the_limit_stays_with_pandas_above_goes_to_spark(
    tmp_path: Path, limit_below: bool
) -> None:
    suite = suite_of(tmp_path, not_null("carrier"))
    content = content_of(tmp_path, departures(1000, 1000))
    size = 8 * 1000  # one repeated word packs to nothing, so the floor of 8 bytes a value counts
    asked: list[tuple[list[str], list[str]]] = []

    def frame(files: list[str], columns: list[str]) -> Any:
        asked.append((files, columns))
        raise LookupError

    config = GateConfig(suite=suite.file, pandas_limit=size - limit_below)
    if limit_below:
        with pytest.raises(LookupError):
            check(suite, content, config, NOW, frame)
    else:
        check(suite, content, config, NOW, frame)

    assert asked == ([(list(content.files), ["carrier"])] if limit_below else [])


def test_verdict_flights_of_the_demo_hold_the_blizzard_and_nothing_else(tmp_path: Path) -> None:
    config = load_pipeline(str(FLIGHTS)).gate
    assert config is not None
    suite = load_suite(config.suite)
    outcomes, shares = {}, {}
    for day, count in flights_per_day().items():
        flights = read_flights(day, day)
        columns = {
            name: [getattr(one, name) for one in flights] for name in Flight.__dataclass_fields__
        }
        partition = Partition((("dt", day.isoformat()),))
        content = content_of(tmp_path, pa.table(columns), partition=partition)

        verdict, _ = check(suite, content, config, NOW)

        outcomes[day.day] = verdict.outcome.value
        shares[day.day] = verdict.checks[0].observed
        assert f"({count.departed} of {count.rows})" in verdict.checks[0].observed

    assert {day for day, outcome in outcomes.items() if outcome == "hold"} == {8, 9}
    assert set(outcomes.values()) == {"pass", "warn", "hold"}
    assert shares[8].startswith("49.2 % not null")
    assert shares[9].startswith("42.5 % not null")


MIXED = [
    not_null("departed_at", 0.8),
    not_null("flight", severity="warning"),
    {
        "type": "expect_column_values_to_be_between",
        "kwargs": {"column": "flight", "min_value": 0, "max_value": 89, "mostly": 0.9},
        "severity": "warning",
    },
    {"type": "expect_column_values_to_be_unique", "kwargs": {"column": "flight"}},
    {
        "type": "expect_column_values_to_be_in_set",
        "kwargs": {"column": "dt", "value_set": ["it's a \\ day"]},
    },
    {
        "type": "expect_column_distinct_values_to_be_in_set",
        "kwargs": {"column": "carrier", "value_set": ["UA"]},
    },
    {"type": "expect_table_row_count_to_be_between", "kwargs": {"min_value": 1, "max_value": 50}},
    {"type": "expect_column_max_to_be_between", "kwargs": {"column": "flight", "max_value": 99}},
    {"type": "expect_table_column_count_to_equal", "kwargs": {"value": 4}},
]


@pytest.mark.spark
@pytest.mark.parametrize("departed", [0, 49, 90, 100])
def test_verdict_pandas_and_spark_say_the_same(
    tmp_path: Path, spark: SparkSession, departed: int
) -> None:
    suite = suite_of(tmp_path, *MIXED)
    day = Partition((("dt", "it's a \\ day"),))
    older = departures(0, 0).drop_columns(["departed_at"])
    content = content_of(tmp_path, departures(100, departed), older, partition=day)
    small = GateConfig(suite=suite.file)
    large = GateConfig(suite=suite.file, pandas_limit=1)

    by_pandas, _ = check(suite, content, small, NOW)
    by_spark, record = check(suite, content, large, NOW, spark_frame_of(spark))

    assert (by_pandas.engine, by_spark.engine) == ("pandas", "spark")
    assert by_spark.checks == by_pandas.checks
    assert by_spark.outcome is by_pandas.outcome
    assert by_spark.rows == by_pandas.rows == 100
    assert json.loads(json.dumps(record, allow_nan=False)) == record


def of_amount(kind: str, **keys: Any) -> dict[str, Any]:
    return {"type": f"expect_column_{kind}", "kwargs": {"column": "amount", **keys}}


ON_DECIMALS = [
    (of_amount("mean_to_be_between", min_value=0.83, max_value=0.84), True),
    (of_amount("sum_to_be_between", min_value=7.499, max_value=7.501), True),
    (of_amount("sum_to_be_between", min_value=7.51), False),
    (of_amount("stdev_to_be_between", min_value=0.4, max_value=0.42), True),
    (of_amount("min_to_be_between", min_value=0.1, max_value=0.1), True),
    (of_amount("max_to_be_between", max_value=1.39), False),
    (of_amount("values_to_be_between", min_value=0.1, max_value=1.4), True),
    (of_amount("values_to_be_in_set", value_set=[0.1, 0.35, 0.6, 0.85, 0.9, 1.15, 1.4]), False),
    (of_amount("values_to_be_in_set", value_set=[0.1, 0.35, 0.6, 0.85, 0.9, 1, 1.15, 1.4]), True),
    (of_amount("values_to_be_unique"), False),
]
"""Checks on nine decimals and a NULL, of which 1.15 is there twice, and what they find."""


@pytest.mark.spark
def test_verdict_on_decimals_is_that_on_their_numbers_in_both_engines(
    tmp_path: Path, spark: SparkSession
) -> None:
    texts = ["0.10", "0.35", "0.60", "0.85", "1.15", "1.40", "0.90", "1.15", "1.00", None]
    amounts = pa.array([it and Decimal(it) for it in texts], pa.decimal128(18, 2))
    suite = suite_of(tmp_path, *(check for check, _ in ON_DECIMALS))
    content = content_of(tmp_path, pa.table({"amount": amounts}))
    large = GateConfig(suite=suite.file, pandas_limit=1)

    by_pandas = judge(suite, content)
    by_spark, _ = check(suite, content, large, NOW, spark_frame_of(spark))

    right = [is_met for _, is_met in ON_DECIMALS]
    assert [item.success for item in by_pandas.checks] == right
    assert [item.success for item in by_spark.checks] == right


@pytest.mark.parametrize(
    "expectation",
    [
        of_amount("values_to_be_of_type", type_="Decimal"),
        of_amount("values_to_match_regex", regex=r"^\d+\.\d{2}$"),
        of_amount("values_to_not_match_regex", regex=r"^\d+\.\d$"),
        of_amount("value_lengths_to_equal", value=4),
    ],
    ids=["type", "regex", "no-regex", "length"],
)
def test_verdict_on_type_or_text_of_a_decimal_sees_what_is_stored(
    tmp_path: Path, expectation: dict[str, Any]
) -> None:
    suite = suite_of(tmp_path, expectation)
    amounts = pa.array([Decimal("0.1")], pa.decimal128(18, 2))

    assert judge(suite, content_of(tmp_path, pa.table({"amount": amounts}))).outcome is Outcome.PASS


def test_verdict_on_decimals_of_two_columns_compares_like_with_like(tmp_path: Path) -> None:
    def column(*texts: str) -> pa.Array:
        return pa.array([Decimal(it) for it in texts], pa.decimal128(28, 2))

    columns = {
        "a": column("0.10", "1.10"),
        "b": column("0.10", "2.20"),
        "back": column("-0.20", "-3.30"),
        "same": column("0.10", "1.10"),
        "long": column("0.10", "12345678901234567890.12"),
    }
    pair = {"type": "expect_column_pair_values_to_be_equal"}
    sums = {"type": "expect_multicolumn_sum_to_equal"}
    suite = suite_of(
        tmp_path,
        {**pair, "kwargs": {"column_A": "a", "column_B": "same"}},
        {**pair, "kwargs": {"column_A": "a", "column_B": "long", "mostly": 0.5}},
        {**sums, "kwargs": {"column_list": ["a", "b", "back"], "sum_total": 0}},
    )

    verdict = judge(suite, content_of(tmp_path, pa.table(columns)))

    assert [item.success for item in verdict.checks] == [True, True, True]


@pytest.mark.spark
def test_verdict_query_as_a_check_runs_on_spark_however_small(
    tmp_path: Path, spark: SparkSession
) -> None:
    query = "SELECT * FROM {batch} WHERE departed_at IS NULL AND dt = '2013-02-08'"
    suite = suite_of(
        tmp_path,
        {"type": "unexpected_rows_expectation", "kwargs": {"unexpected_rows_query": query}},
    )
    content = content_of(tmp_path, departures(10, 7))

    verdict, _ = check(suite, content, GateConfig(suite=suite.file), NOW, spark_frame_of(spark))

    assert (verdict.engine, verdict.outcome) == ("spark", Outcome.HOLD)
    assert verdict.checks[0].observed == "unexpected rows 3"


NO_NEGATIVE = {
    "type": "unexpected_rows_expectation",
    "kwargs": {"unexpected_rows_query": "SELECT * FROM {batch} WHERE id < 0 OR dt IS NULL"},
}


@pytest.mark.spark
@pytest.mark.parametrize("left", ["an empty file", "no file"])
def test_partition_that_lost_all_rows_is_judged_by_a_query(
    tmp_path: Path, spark: SparkSession, left: str
) -> None:
    del spark  # the session that the gate finds
    lake = SmallLake(tmp_path / "lake")
    folder = tmp_path / "landing"
    folder.mkdir()
    lake.source = {"kind": "files", "path": str(folder), "on_changed_file": "ignore"}
    suite = {"suite": suite_of(tmp_path, NO_NEGATIVE).file}
    lake.keys = {"commit": {"trigger": "process-time"}, "gate": suite}
    pq.write_table(pa.table({"id": [1], "at": [DAY_1]}), folder / "a.parquet")
    load(lake.pipeline())
    publish(lake.pipeline())
    (folder / "a.parquet").unlink()
    if left == "an empty file":
        pq.write_table(pa.table({"id": [], "at": []}), folder / "b.parquet")
    load(lake.pipeline())
    pipeline = lake.pipeline()
    planned = pipeline.rebuild([pipeline.parse_partition("2026-02-01")], Run("again", "cli"), NOW)
    pipeline.finish_load(planned, NOW, local)

    outcomes = publish(pipeline)

    assert [(item.state, item.gate) for item in outcomes] == [("committed", Outcome.PASS)]
    assert lake.ids() == {"dt=2026-02-01": []}
    assert lake.listed_ids() == {}


def test_partition_that_lost_all_rows_still_has_the_columns_of_its_table(tmp_path: Path) -> None:
    lake = SmallLake(tmp_path / "lake")
    names = {"column_set": ["id", "at", "amount", "dt"]}
    columns = {"type": "expect_table_columns_to_match_set", "kwargs": names}
    lake.keys = {
        "commit": {"trigger": "process-time"},
        "gate": {"suite": suite_of(tmp_path, columns).file},
    }
    lake.commit({1: 2})
    load(lake.pipeline())
    publish(lake.pipeline())
    pipeline = lake.pipeline(source={"read": {"filter": "amount > 1"}})
    planned = pipeline.rebuild([pipeline.parse_partition("2026-02-01")], Run("again", "cli"), NOW)
    pipeline.finish_load(planned, NOW, local)

    outcomes = publish(pipeline)

    assert [(item.state, item.gate) for item in outcomes] == [("committed", Outcome.PASS)]
    assert lake.ids() == {"dt=2026-02-01": []}


@dataclass
class Landing:
    """A folder of files with rows of one day, and the partitions that a suite judges."""

    lake: SmallLake
    folder: Path
    read: dict[str, Any] = field(default_factory=dict)

    def judged_by(self, kind: str, **kwargs: Any) -> None:
        """Let one expectation decide."""
        suite = suite_of(self.lake.root, {"type": kind, "kwargs": kwargs}).file
        self.lake.keys |= {"commit": {"trigger": "process-time"}, "gate": {"suite": suite}}

    def put(self, name: str, **columns: list[Any]) -> Path:
        path = self.folder / f"{name}.parquet"
        pq.write_table(pa.table({"at": [DAY_1], **columns}), path)
        return path

    def pipeline(self) -> Pipeline:
        keys = {"on_changed_file": "ignore", "read": self.read}
        self.lake.source = {"kind": "files", "path": str(self.folder), **keys}
        return self.lake.pipeline()

    def rebuild(self) -> None:
        pipeline = self.pipeline()
        partitions = [item.partition for item in pipeline.ledger.partitions.all()]
        planned = pipeline.rebuild(partitions, Run("again", "cli"), NOW)
        pipeline.finish_load(planned, NOW, local)

    def published(self) -> list[tuple[str, Outcome | None]]:
        return [(item.state, item.gate) for item in publish(self.pipeline())]


@pytest.fixture
def landing(tmp_path: Path) -> Landing:
    lake, folder = SmallLake(tmp_path / "lake"), tmp_path / "landing"
    folder.mkdir()
    return Landing(lake, folder)


PASSED = [("committed", Outcome.PASS)]


@pytest.mark.parametrize("key", ["region", "zone"])
def test_partition_that_lost_all_rows_has_its_columns_in_their_order(
    landing: Landing, key: str
) -> None:
    columns = ["at", "id", key]
    landing.judged_by("expect_table_columns_to_match_ordered_list", column_list=columns)
    landing.lake.keys["target"] = {"partition_by": {"dt": None, key: "region"}}
    landing.lake.keys["event_time"] = None
    file = landing.put("a", region=["eu"], id=[1])
    load(landing.pipeline())
    with_rows = landing.published()
    file.unlink()
    load(landing.pipeline())
    landing.rebuild()

    without = landing.published()

    assert (with_rows, without) == (PASSED, PASSED)
    assert landing.lake.ids() == {f"{key}=eu": []}


@pytest.mark.parametrize("plan", ["lost", "damaged"])
def test_partition_that_lost_all_rows_is_judged_without_the_plan_of_rows_that_are_gone(
    landing: Landing, plan: str
) -> None:
    landing.judged_by("expect_column_values_to_not_be_null", column="id")
    landing.read = {"mode": "snapshot"}
    file = landing.put("a", id=[1])
    load(landing.pipeline())
    landing.published()
    file.unlink()
    load(landing.pipeline())
    (first,) = landing.lake.work.glob("windows/000001/*/plan.json")
    if plan == "lost":
        first.unlink()
    else:
        first.write_text("{")

    outcomes = landing.published()

    assert outcomes == PASSED
    assert landing.lake.ids() == {"dt=2026-02-01": []}


def test_folder_read_whole_that_lost_all_files_has_the_columns_that_they_had(
    landing: Landing,
) -> None:
    columns = {"column_set": ["at", "id", "region", "dt"]}
    landing.judged_by("expect_table_columns_to_match_set", **columns)
    landing.read = {"mode": "snapshot"}
    file = landing.put("a", region=["eu"], id=[1])
    load(landing.pipeline())
    landing.published()
    file.unlink()
    load(landing.pipeline())

    outcomes = landing.published()

    assert outcomes == PASSED
    assert landing.lake.ids() == {"dt=2026-02-01": []}


def test_partition_that_lost_all_rows_has_no_column_that_a_rebuild_left_out(
    landing: Landing,
) -> None:
    columns = {"column_set": ["at", "id", "old", "dt"]}
    landing.judged_by("expect_table_columns_to_match_set", **columns)
    landing.put("a", old=["x"], id=[1])
    load(landing.pipeline())
    with_rows = landing.published()
    columns["column_set"].remove("old")
    landing.judged_by("expect_table_columns_to_match_set", **columns)
    landing.read = {"columns": ["at", "id"], "filter": "id > 1"}
    landing.rebuild()

    outcomes = landing.published()

    assert (with_rows, outcomes) == (PASSED, PASSED)
    assert landing.lake.ids() == {"dt=2026-02-01": []}


@pytest.mark.spark
def test_columns_of_a_partition_without_files_have_the_types_that_spark_reads(
    tmp_path: Path, spark: SparkSession
) -> None:
    kinds = {
        "flag": pa.bool_(),
        **{f"int{bits}": getattr(pa, f"int{bits}")() for bits in (8, 16, 32, 64)},
        **{f"uint{bits}": getattr(pa, f"uint{bits}")() for bits in (8, 16, 32, 64)},
        "float": pa.float32(),
        "double": pa.float64(),
        "date": pa.date32(),
        "zoned": pa.timestamp("us", "UTC"),
        "zoneless": pa.timestamp("us"),
        "decimal": pa.decimal128(12, 3),
        "text": pa.string(),
        "bytes": pa.binary(),
        "fixed": pa.binary(4),
        "words": pa.dictionary(pa.int32(), pa.string()),
        "a `struct`": pa.struct([("a `b`", pa.int64()), ("list", pa.list_(pa.date32()))]),
        "map": pa.map_(pa.string(), pa.list_(pa.float64())),
    }
    schema = pa.schema(list(kinds.items()))
    stored = content_of(tmp_path, schema.empty_table())
    spark_frame = functools.partial(frames.spark_frame, spark)

    read = in_spark(spark_frame, read_footers(stored), schema.names)
    planned = GateInput(DAY, (), unified, lambda: (schema,))
    made = in_spark(spark_frame, empty_footers(planned, ()), schema.names)

    assert [(field.name, field.dataType) for field in made.schema] == [
        (field.name, field.dataType) for field in read.schema
    ]
    assert made.count() == 0


def test_publish_of_a_pipeline_without_a_gate_says_nothing_of_one(tmp_path: Path) -> None:
    lake = SmallLake(tmp_path / "lake")
    lake.commit({1: 3, 2: 1})
    load(lake.pipeline())

    said = {(item.state, item.gate) for item in publish(lake.pipeline())}

    assert said == {("committed", None), ("pending", None)}
