"""Judge one partition as it would be published: run the suite, and rate the failures."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidegate.config.words import suggest
from tidegate.errors import SuiteInvalid
from tidegate.gate import library, words
from tidegate.gate.arguments import check_arguments
from tidegate.gate.content import (
    Footers,
    GateInput,
    constants,
    empty_footers,
    read_columns,
    read_footers,
    table_schema,
)
from tidegate.gate.frame import SparkFrame, in_spark, seen, to_pandas, with_constants
from tidegate.gate.suite import CRITICAL, Sees, Suite
from tidegate.model.publication import CheckResult, Outcome, Verdict
from tidegate.model.wire import instant_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from tidegate.config import GateConfig

NO_ENGINE = "none"
RECORD_FORMAT = 1


def check(
    suite: Suite | None,
    content: GateInput,
    config: GateConfig | None,
    now: datetime,
    spark_frame: SparkFrame | None = None,
) -> tuple[Verdict, dict[str, Any]]:
    """Run all checks on a partition as it would be published: a share means the same everywhere.

    Only the columns that the suite names are read. Up to `gate.pandas_limit` bytes of them are
    checked with pandas, more with Spark (AF-6.4); a check that is a query always needs Spark.
    Nothing is written.

    Args:
        suite: the result of `load_suite`; None passes everything.
        content: the partition and the current paths of its files.
        config: the `gate` section of the pipeline file; None together with `suite`.
        now: aware time, stored as `checked_at`.
        spark_frame: opens a Spark frame; called only if Spark is needed.

    Returns:
        The verdict, and the content of `gate.json` (JSON-ready).

    Raises:
        SuiteInvalid: a check names a missing column, is unknown, or failed while running.
        ContentUnreadable: a file of the partition cannot be read.
        ColumnTypesDiffer: two of its files have types of one column without a common type.
    """
    footers = read_footers(content)
    if suite is None or config is None:
        verdict = Verdict(Outcome.PASS, (), footers.rows, NO_ENGINE, now)
        return verdict, _record(verdict, content)
    if not content.files:
        footers = empty_footers(content, suite.columns or ())
    columns = _needed(suite, table_schema(content, footers).names)
    engine = _engine(suite, footers, columns, config)
    rows = _rows(engine, suite, content, footers, columns, spark_frame)

    def frame_of(form: Sees) -> Any:
        if form is Sees.SCHEMA:
            return to_pandas(table_schema(content, footers).empty_table())
        return seen(rows, form) if engine == library.PANDAS else rows

    results = library.run_expectations(suite, frame_of, engine)
    checks = tuple(
        CheckResult(
            name=expectation.name,
            severity=expectation.severity,
            success=bool(result["success"]),
            observed=words.observed(expectation, result),
            expected=words.expected(expectation, result),
        )
        for expectation, result in zip(suite.expectations, results, strict=True)
    )
    outcome = judge(checks, Outcome(config.on_failure))
    verdict = Verdict(outcome, checks, footers.rows, engine, now)
    details = {
        "suite": {"file": suite.file, "name": suite.name, "digest": suite.digest},
        "library": library.version(),
        "columns": list(columns),
        "results": list(results),
    }
    return verdict, {**_record(verdict, content), **details}


def suite_mistakes(
    suite: Suite, columns: Mapping[str, pa.DataType | None], keys: Iterable[str] = ()
) -> Iterator[SuiteInvalid]:
    """Find everything in a suite that does not fit a table, without any row of it.

    Args:
        suite: the result of `load_suite`.
        columns: the table's columns, with their types if known.
        keys: partition keys whose values are texts, read from folders.

    Yields:
        For each check the first mistake: a column that the table does not have, a name that the
        library does not know, or arguments that the check refuses or that do not fit the column.
    """
    # Spark, which a query needs, compares such texts with numbers.
    types = {**columns, **dict.fromkeys(keys, None if suite.needs_sql else pa.string())}
    for number, expectation in enumerate(suite.expectations):
        try:
            _needed(replace(suite, expectations=(expectation,)), tuple(types))
            built = library.build(suite, number)
            check_arguments(suite, expectation, built, types)
        except SuiteInvalid as refused:
            yield refused


def judge(checks: Sequence[CheckResult], on_failure: Outcome) -> Outcome:
    """Rate the failures (AF-6.6): a critical one decides, a warning is reported, `info` is not."""
    failed = {check.severity for check in checks if not check.success}
    if CRITICAL in failed:
        return on_failure
    return Outcome.WARN if "warning" in failed else Outcome.PASS


def _needed(suite: Suite, known: Sequence[str]) -> tuple[str, ...]:
    """Return the columns to read, in the table's order; an unknown name ends the check."""
    for expectation in suite.expectations:
        for column in expectation.columns or ():
            if column not in known:
                problem = f"{expectation.name}: no column '{column}'; {suggest(column, known)}"
                raise SuiteInvalid(suite=suite.file, problem=problem)
    wanted = suite.columns
    return tuple(name for name in known if wanted is None or name in wanted)


def _engine(suite: Suite, footers: Footers, columns: Sequence[str], config: GateConfig) -> str:
    weight = sum(footers.column_bytes.get(column, 0) for column in columns)
    return library.SPARK if suite.needs_sql or weight > config.pandas_limit else library.PANDAS


def _rows(
    engine: str,
    suite: Suite,
    content: GateInput,
    footers: Footers,
    columns: Sequence[str],
    spark_frame: SparkFrame | None,
) -> Any:
    if engine == library.PANDAS:
        return read_columns(content, footers, columns)
    if spark_frame is None:
        problem = (
            "needs Spark, which is not available here: a check is a query, or the columns are too "
            "large"
        )
        raise SuiteInvalid(suite=suite.file, problem=problem)
    frame = in_spark(spark_frame, footers, columns, content.parts)
    return with_constants(frame, constants(content, footers, columns))


def _record(verdict: Verdict, content: GateInput) -> dict[str, Any]:
    return {
        "format": RECORD_FORMAT,
        "partition": str(content.partition),
        "outcome": verdict.outcome.value,
        "rows": verdict.rows,
        "files": len(content.files),
        "engine": verdict.engine,
        "checked_at": instant_text(verdict.checked_at),
        "checks": [
            {
                "name": item.name,
                "severity": item.severity,
                "success": item.success,
                "observed": item.observed,
                "expected": item.expected,
            }
            for item in verdict.checks
        ],
    }
