"""Sorted rows and merged runs, against Python's own stable sort."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.sort_key import SortKey
from tidegate.read.sorted_rows import RowOrder, merge_runs, order_problem

SCHEMA = pa.schema([("x", pa.float64()), ("name", pa.string()), ("at", pa.int64())])
Row = tuple[float | None, str | None, int]
ROWS = st.lists(
    st.tuples(
        st.none() | st.sampled_from([math.nan, -1.0, 0.0, 1.0, 2.5]),
        st.none() | st.sampled_from(["", "a", "ab", "ä", "b"]),
    ),
    max_size=40,
).map(lambda found: [(x, name, at) for at, (x, name) in enumerate(found)])
ORDERS = st.lists(
    st.builds(SortKey, st.sampled_from(["x", "name"]), st.booleans()),
    min_size=1,
    max_size=2,
    unique_by=lambda key: key.column,
).map(lambda keys: RowOrder(tuple(keys)))


def batch(rows: list[Row]) -> pa.RecordBatch:
    named = [dict(zip(SCHEMA.names, row, strict=True)) for row in rows]
    return pa.RecordBatch.from_pylist(named, schema=SCHEMA)


def ats(rows: pa.RecordBatch) -> list[int]:
    return list(rows.column("at").to_pylist())


def compared(one: Any, other: Any, *, descending: bool) -> int:
    """-1, 0, 1: numbers and texts, then NaN, then NULL, whatever the direction."""

    def last(value: Any) -> int:
        return 2 if value is None else int(isinstance(value, float) and math.isnan(value))

    if last(one) or last(other):
        return last(one) - last(other)
    key = [item.encode() if isinstance(item, str) else item for item in (one, other)]
    found = (key[0] > key[1]) - (key[0] < key[1])
    return -found if descending else found


def expected(rows: list[Row], order: RowOrder) -> list[int]:
    def compare(one: Row, other: Row) -> int:
        for key in order.keys:
            at = SCHEMA.get_field_index(key.column)
            found = compared(one[at], other[at], descending=key.descending)
            if found:
                return found
        return 0

    return [row[2] for row in sorted(rows, key=functools.cmp_to_key(compare))]


@given(ROWS, ORDERS)
def test_sorted_is_stable_with_nothing_last(rows: list[Row], order: RowOrder) -> None:
    assert ats(order.sorted(batch(rows))) == expected(rows, order)


@dataclass
class Kept:
    """A block in memory that counts how many are out at once."""

    rows: pa.RecordBatch
    order: RowOrder
    reads: list[int]

    @property
    def first(self) -> pa.RecordBatch:
        return self.order.values(self.rows.slice(0, 1))

    def read(self) -> pa.RecordBatch:
        self.reads.append(self.rows.num_rows)
        return self.rows


def run(rows: list[Row], order: RowOrder, size: int, reads: list[int]) -> list[Kept]:
    ordered = order.sorted(batch(rows))
    return [
        Kept(ordered.slice(start, size), order, reads) for start in range(0, ordered.num_rows, size)
    ]


@given(
    rows=ROWS,
    order=ORDERS,
    cuts=st.lists(st.integers(0, 40), max_size=5),
    size=st.integers(1, 9),
)
def test_merge_of_any_runs_is_the_order_of_all_rows(
    rows: list[Row], order: RowOrder, cuts: list[int], size: int
) -> None:
    bounds = sorted({0, len(rows), *(cut for cut in cuts if cut < len(rows))})
    reads: list[int] = []
    runs = [run(rows[start:end], order, size, reads) for start, end in itertools.pairwise(bounds)]

    merged = [at for found in merge_runs(runs, order) for at in ats(found)]

    assert merged == expected(rows, order)
    assert sum(reads) == len(rows), "each block is read once"


def test_runs_that_follow_one_another_are_read_one_after_the_other() -> None:
    order, reads = RowOrder((SortKey("x"),)), []  # type: tuple[RowOrder, list[int]]
    rows: list[Row] = [(float(at), None, at) for at in range(80)]
    runs = [run(rows[start : start + 20], order, 5, reads) for start in (40, 0, 60, 20)]

    seen = []
    for found in merge_runs(runs, order):
        seen += ats(found)
        assert sum(reads) - len(seen) <= 5, "one block ahead"

    assert seen == list(range(80))


def test_wide_run_beside_narrow_ones_keeps_two_blocks_of_each_in_memory() -> None:
    order, reads = RowOrder((SortKey("x"),)), []  # type: tuple[RowOrder, list[int]]
    wide: list[Row] = [(float(at), None, at) for at in range(0, 1_000, 100)]
    dense: list[Row] = [(float(at), None, at) for at in range(1_000) if at % 100]
    runs = [run(rows, order, 10, reads) for rows in (wide, dense[::2], dense[1::2])]

    seen = []
    for found in merge_runs(runs, order):
        seen += ats(found)
        assert sum(reads) - len(seen) <= 60

    assert seen == list(range(1_000))


def test_runs_side_by_side_are_merged_a_block_of_each_at_a_time() -> None:
    order = RowOrder((SortKey("x"),))
    rows: list[Row] = [(float(at), None, at) for at in range(1_000)]
    runs = [run(rows[start::10], order, 10, []) for start in range(10)]

    found = [ats(part) for part in merge_runs(runs, order)]

    assert [at for part in found for at in part] == list(range(1_000))
    assert len(found) <= 2 * 10, "not once for each of 100 blocks"


def test_values_in_a_dictionary_are_compared_themselves() -> None:
    column = pa.DictionaryArray.from_arrays([0, 1, 0], ["b", "a"])
    rows = pa.record_batch({"name": column, "at": [0, 1, 2]})

    assert ats(RowOrder((SortKey("name"),)).sorted(rows)) == [1, 0, 2]


@pytest.mark.parametrize(
    "kind",
    [pa.int8(), pa.string(), pa.decimal128(9, 2), pa.timestamp("us", "UTC"), pa.bool_(), pa.uuid()],
    ids=str,
)
def test_columns_of_values_with_an_order_are_taken(kind: pa.DataType) -> None:
    assert order_problem(kind) is None


@pytest.mark.parametrize(
    "kind",
    [pa.list_(pa.int64()), pa.struct([("a", pa.int64())]), pa.map_(pa.string(), pa.int64())],
    ids=str,
)
def test_columns_of_lists_and_structures_are_refused(kind: pa.DataType) -> None:
    assert order_problem(kind)
