"""Pruning leaves out only files without a passing row, whatever the filter is."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField, StringType, TimestampType

from golden_iceberg import golden, lines, read
from iceberg_states import entry_of, metrics_of
from tidegate.model.instant import InstantRange
from tidegate.predicate import Predicate
from tidegate.source.iceberg.manifests.pruning import Pruning

if TYPE_CHECKING:
    from collections.abc import Iterator

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def _planned(case: str, text: str | None) -> tuple[Any, Any]:
    keys = {"filter": text} if text else {}
    source = golden(case).source(start="earliest", read={"on_non_append": "skip", **keys})
    pin = source.timeline.pin(NOW)
    units = source.slicing.units(pin, InstantRange(None, pin.head))
    return units, read(source, pin, units)


def _passing(table: Any, text: str) -> list[str]:
    predicate = Predicate.parse(text, table.schema, "test")
    return lines(
        type(table).from_batches(
            [batch.filter(predicate.mask(batch)) for batch in table.to_batches()], table.schema
        )
    )


ALL_SORTED = _planned("sorted_bounds_v2", None)
ID = "id"


@given(
    operator=st.sampled_from(["<", "<=", "=", ">=", ">", "<>"]),
    bound=st.integers(-10, 2_100),
    other=st.integers(-10, 2_100),
    shape=st.sampled_from(["{a}", "NOT ({a})", "{a} AND {b}", "{a} OR {b}", "NOT ({a} AND {b})"]),
)
def test_pruned_files_hold_no_passing_row(
    operator: str, bound: int, other: int, shape: str
) -> None:
    text = shape.format(a=f"{ID} {operator} {bound}", b=f"{ID} IN ({other}, {bound})")

    units, table = _planned("sorted_bounds_v2", text)

    assert _passing(table, text) == _passing(ALL_SORTED[1], text)
    assert len(units) <= len(ALL_SORTED[0])


def test_bounds_outside_the_filter_are_pruned_and_counted() -> None:
    units, _ = _planned("sorted_bounds_v2", f"{ID} > 1000000000")

    assert len(units) == 0
    assert units.notes[-1] == f"the filter ruled out {len(ALL_SORTED[0])} files by metrics"
    left_out = {"the filter ruled out files by metrics": len(ALL_SORTED[0])}
    assert units.listed.left_out == left_out


@pytest.mark.parametrize("text", ["{} > 1000000000", "0 < {} and {} <= 300"], ids=["all", "some"])
def test_name_in_another_case_prunes_the_same_files(text: str) -> None:
    as_spelled, _ = _planned("sorted_bounds_v2", text.replace("{}", "id"))
    otherwise, _ = _planned("sorted_bounds_v2", text.replace("{}", "ID"))

    assert otherwise == as_spelled
    assert len(otherwise) < len(ALL_SORTED[0])


@pytest.mark.parametrize(
    ("text", "prunes"),
    [
        (f"{ID} is not distinct from 300", True),
        (f"{ID} is distinct from 300", False),
        (f"not ({ID} is not distinct from 300)", False),
        (f"{ID} is not distinct from null", False),
    ],
)
def test_null_safe_equality_prunes_like_equality(text: str, prunes: bool) -> None:
    units, table = _planned("sorted_bounds_v2", text)

    assert _passing(table, text) == _passing(ALL_SORTED[1], text)
    assert (len(units) < len(ALL_SORTED[0])) is prunes


def test_name_that_fits_two_columns_is_left_to_the_reader() -> None:
    fields = [NestedField(1, "a", StringType()), NestedField(2, "A", StringType())]
    specs = {0: UNPARTITIONED_PARTITION_SPEC}

    assert Pruning(Schema(*fields), specs, "A = 'x'").metric_ids == {2}
    assert not Pruning(Schema(*fields), specs, "C = 'x'").is_active
    doubled = Schema(NestedField(1, "Ab", StringType()), NestedField(2, "aB", StringType()))
    assert not Pruning(doubled, specs, "ab = 'x'").is_active


@pytest.mark.parametrize(
    "text",
    [
        f"abs({ID}) > 1000000000",
        "cast(1 as varchar) = '1'",
        f"CASE WHEN {ID} > 3 THEN true ELSE false END",
    ],
    ids=["function", "cast", "case"],
)
def test_filter_that_pyiceberg_cannot_parse_prunes_nothing(text: str) -> None:
    units, _ = _planned("sorted_bounds_v2", text)

    assert len(units) == len(ALL_SORTED[0])


def test_pattern_is_left_to_the_reader() -> None:
    # pyiceberg would read "_" as itself and rule out what the pattern matches.
    units, table = _planned("append_v2", "name LIKE 'n_0%'")
    everything = _planned("append_v2", None)[1]

    assert _passing(table, "name LIKE 'n_0%'") == _passing(everything, "name LIKE 'n_0%'")
    assert len(_passing(table, "name LIKE 'n_0%'")) == len(["n10", "n20", "n30"])
    assert len(units) == len(_planned("append_v2", None)[0])


def test_floats_are_left_to_the_reader() -> None:
    # NaN is larger than all numbers for the reader, and in no bound.
    units, _ = _planned("schema_evolution_v2", "f > 1e300")

    assert len(units) == len(_planned("schema_evolution_v2", None)[0])


def test_date_literals_prune_partitions() -> None:
    everything = _planned("transform_identity_v2", None)[0]

    units, _ = _planned("transform_identity_v2", "dt > date '9999-12-31'")

    assert len(units) < len(everything)


def test_time_literals_prune_days() -> None:
    everything = _planned("event_time_v2", None)[0]

    units, _ = _planned("event_time_v2", "ts > timestamp '9999-12-31 00:00:00'")

    assert len(units) < len(everything)


def test_text_that_ends_like_a_typed_literal_is_left_alone() -> None:
    schema = Schema(NestedField(1, "name", StringType()))
    held = entry_of(metrics=metrics_of({1: (b"date ", b"date ")}, {1: 0}, kind=StringType()))

    pruning = Pruning(schema, {0: UNPARTITIONED_PARTITION_SPEC}, "name = 'date '")

    assert pruning.is_active
    assert pruning.keep([held], Counter()) == [held]


def test_bound_of_another_width_rules_nothing_out() -> None:
    # A date that became a timestamp keeps bounds of four bytes.
    schema = Schema(NestedField(1, "seen", TimestampType()))
    days = {1: (b"\x01\x00\x00\x00", b"\x02\x00\x00\x00")}
    held = entry_of(metrics=metrics_of(days, {1: 0}, kind=TimestampType()))

    pruning = Pruning(
        schema, {0: UNPARTITIONED_PARTITION_SPEC}, "seen > timestamp '9999-12-31 00:00:00'"
    )

    assert pruning.is_active
    assert pruning.keep([held], Counter()) == [held]


@pytest.mark.parametrize(
    "case",
    [
        "eq_partition_v2",
        "mor_partition_scope_v2",
        "partition_evolution_v2",
        "schema_evolution_v2",
        "special_partitions_v2",
        "transform_time_v2",
        "upgrade_v1_v2_v3",
    ],
)
def test_snapshot_with_a_filter_has_the_rows_that_pass(case: str) -> None:
    table = golden(case)
    head = table.answers["current_snapshot_id"]
    everything = table.changes("snapshot", None, head)

    for text in _filters(everything):
        found = table.changes("snapshot", None, head, read={"filter": text})

        assert lines(found) == _passing(everything, text), text


def _filters(table: pa.Table) -> Iterator[str]:
    """Compare each whole-number and text column with a value that it has."""
    for column in table.schema:
        values = [it for it in table.column(column.name).to_pylist() if it is not None]
        quote = "'" if pa.types.is_string(column.type) else ""
        if values and (quote or pa.types.is_integer(column.type)):
            literal = f"{quote}{values[len(values) // 2]}{quote}"
            if literal.count("'") in {0, 2} and "\\" not in literal:
                yield f"{column.name} >= {literal}"
                yield f"NOT ({column.name} = {literal})"
        yield f"{column.name} IS NULL"
