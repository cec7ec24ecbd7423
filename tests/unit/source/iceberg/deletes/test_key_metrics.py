"""Metrics rule out an equality delete only where no key of it is in the data file (ICE-4.9)."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.types import DateType, IntegerType, LongType, StringType

from tidegate.source.iceberg.deletes.key_metrics import KeyBounds, KeyMetrics, key_metrics
from tidegate.source.iceberg.deletes.rules import KeyField
from tidegate.source.iceberg.manifests.metrics import ColumnMetrics, Metrics

KEY = 1
OPTIONAL = KeyField(LongType(), required=False)
COLUMNS = st.lists(st.none() | st.integers(-4, 4), min_size=1, max_size=4)
# Writers may leave out what they know.
TOLD = st.sets(st.sampled_from(["counts", "bounds"]))


def _metrics(column: list[int | None], told: set[str], *, is_int: bool = False) -> Metrics:
    """Return the metrics that a writer gives a column with these values."""
    known = [value for value in column if value is not None]
    found = ColumnMetrics()
    if "counts" in told:
        found = found._replace(values=len(column), nulls=len(column) - len(known))
    if "bounds" in told and known:
        code = "<i" if is_int else "<q"
        lower, upper = struct.pack(code, min(known)), struct.pack(code, max(known))
        found = found._replace(lower=lower, upper=upper)
    kind = IntegerType() if is_int else LongType()
    return Metrics(len(column), {KEY: 0}, (found,), {KEY: kind})


@given(
    data=COLUMNS,
    told=TOLD,
    is_int=st.booleans(),
    deletes=st.lists(st.tuples(COLUMNS, TOLD, st.booleans()), max_size=5),
    first=st.integers(0, 5),
)
def test_delete_file_that_is_ruled_out_has_no_key_of_the_data_file(
    data: list[int | None],
    told: set[str],
    is_int: bool,
    deletes: list[tuple[list[int | None], set[str], bool]],
    first: int,
) -> None:
    """NULL equals NULL (ICE-4.8)."""
    bounds = KeyBounds(
        [key_metrics(_metrics(keys, told, is_int=it), KEY, OPTIONAL) for keys, told, it in deletes]
    )

    marks = bounds.ruled_out(
        key_metrics(_metrics(data, told, is_int=is_int), KEY, OPTIONAL), min(first, len(deletes))
    )

    marked = marks.tolist() if marks is not None else [False] * len(deletes[first:])
    for is_ruled_out, (keys, *_) in zip(marked, deletes[first:], strict=True):
        assert not is_ruled_out or not set(keys) & set(data)


@given(low=st.integers(-9, 9), data=COLUMNS)
def test_delete_file_beyond_all_values_is_ruled_out(low: int, data: list[int | None]) -> None:
    everything = {"counts", "bounds"}
    known = [value for value in data if value is not None] or [0]
    beyond = [max(known) + 1 + abs(low)]
    bounds = KeyBounds([key_metrics(_metrics(beyond, everything), KEY, OPTIONAL)])

    marks = bounds.ruled_out(key_metrics(_metrics(data, everything), KEY, OPTIONAL), 0)

    assert marks is not None
    assert marks.tolist() == [True]


def test_column_that_a_file_says_nothing_of_rules_nothing_out() -> None:
    known = key_metrics(_metrics([1], {"counts", "bounds"}), KEY, OPTIONAL)

    assert key_metrics(None, KEY, OPTIONAL) == KeyMetrics()
    assert KeyBounds([known]).ruled_out(KeyMetrics(), 0) is None


def test_required_column_has_no_null_unless_its_count_says_so() -> None:
    """A column that is required now may have been optional in a schema that is forgotten."""
    required = replace(OPTIONAL, required=True)

    assert key_metrics(None, KEY, required).has_no_null
    assert key_metrics(_metrics([1], set()), KEY, required).has_no_null
    assert not key_metrics(_metrics([1, None], {"counts"}), KEY, required).has_no_null


def test_count_of_no_null_is_not_believed_where_nulls_are_not_counted() -> None:
    """ORC knows of no NULL below a struct that is NULL itself."""
    below = replace(OPTIONAL, nulls_counted=False)

    assert not key_metrics(_metrics([1], {"counts"}), KEY, below).has_no_null


@pytest.mark.parametrize(
    ("kind", "lower", "upper"),
    [
        (StringType(), b"a", b"b"),
        (DateType(), struct.pack("<i", 1), struct.pack("<i", 2)),
    ],
    ids=["text", "date"],
)
def test_bounds_of_types_that_do_not_compare_rule_nothing_out(
    kind: Any, lower: bytes, upper: bytes
) -> None:
    other = Metrics(1, {KEY: 0}, (ColumnMetrics(1, 0, None, lower, upper),), {KEY: kind})
    numbers = key_metrics(_metrics([100], {"counts", "bounds"}), KEY, OPTIONAL)

    beyond = key_metrics(_metrics([7], {"counts", "bounds"}), KEY, OPTIONAL)
    marks = KeyBounds([key_metrics(other, KEY, OPTIONAL), beyond]).ruled_out(numbers, 0)

    assert marks is not None
    assert marks.tolist() == [False, True]
