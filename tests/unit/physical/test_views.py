"""Columns that Arrow reads as views have the values that Arrow itself reads, in plain types."""

from __future__ import annotations

import base64
import io
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.physical import open_rows
from tidegate.physical.int96 import is_zoneless
from tidegate.physical.views import column_without_views, schema_without_views

LEAVES = [pa.int32(), pa.string(), pa.string_view(), pa.binary_view()]
LISTS = [pa.list_, pa.large_list, pa.list_view, pa.large_list_view]


def nested(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    return (
        st.builds(lambda make, item: make(item), st.sampled_from(LISTS), inner)
        | st.builds(lambda item: pa.list_(item, 2), inner)
        | st.builds(lambda a: pa.struct({"a": a}), inner)
        | st.builds(lambda a, b: pa.struct({"a": a, "b": b}), inner, inner)
        | st.builds(lambda item: pa.map_(pa.string_view(), item), inner)
    )


def values_of(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Return a strategy for Python values, as Arrow has them, of any type made here."""
    if pa.types.is_struct(kind):
        whole = st.fixed_dictionaries({field.name: values_of(field.type) for field in kind})
    elif pa.types.is_map(kind):
        whole = st.lists(
            st.tuples(st.text("xyz", max_size=20), values_of(kind.item_type)), max_size=2
        )
    elif pa.types.is_nested(kind):
        fixed = {"min_size": 2, "max_size": 2} if pa.types.is_fixed_size_list(kind) else {}
        whole = st.lists(values_of(kind.value_type), **{"max_size": 3, **fixed})
    elif pa.types.is_integer(kind):
        whole = st.integers(0, 9)
    else:
        texts = st.text("xyz", max_size=20)
        whole = texts.map(str.encode) if pa.types.is_binary_view(kind) else texts
    return st.none() | whole


TYPES = st.recursive(st.sampled_from(LEAVES), nested, max_leaves=4)
COLUMNS = TYPES.flatmap(
    lambda kind: st.tuples(st.just(kind), st.lists(values_of(kind), min_size=1, max_size=12))
)


def written(kind: pa.DataType, values: list[Any], group_rows: int) -> io.BytesIO:
    """Write a file as if by a writer that held views, not all of which Arrow can write."""
    held = pa.schema([("c", kind)])
    plain = schema_without_views(held)
    file, table = io.BytesIO(), pa.table([pa.array(values, plain.field("c").type)], plain)
    with pq.ParquetWriter(file, plain, store_schema=False) as writer:
        writer.write_table(table, group_rows)
        writer.add_key_value_metadata({"ARROW:schema": base64.b64encode(held.serialize())})
    assert pq.read_schema(file).field("c").type == kind
    return file


@given(column=COLUMNS, group_rows=st.integers(1, 12), batch_rows=st.integers(1, 12), data=st.data())
def test_file_is_read_as_arrow_reads_it(
    column: tuple[pa.DataType, list[Any]], group_rows: int, batch_rows: int, data: st.DataObject
) -> None:
    kind, values = column
    file = written(kind, values, group_rows)
    start = data.draw(st.integers(0, len(values)), "start")
    end = data.draw(st.integers(start, len(values)), "end")

    with open_rows(pa.BufferReader(file.getvalue()), "parquet") as rows:
        batches = [batch for _, batch in rows.batches(["c"], start, end, batch_rows)]
        schema = rows.schema

    assert "view" not in str(schema.field("c").type)
    for batch in batches:
        assert batch.schema == schema
        batch.validate(full=True)
    found = [value for batch in batches for value in batch["c"].to_pylist()]
    assert found == pq.read_table(file)["c"].to_pylist()[start:end] == values[start:end]


@given(column=COLUMNS, low=st.integers(0, 3), rows=st.integers(0, 12))
def test_slice_of_a_column_keeps_its_values(
    column: tuple[pa.DataType, list[Any]], low: int, rows: int
) -> None:
    kind, values = column
    plain = schema_without_views(pa.schema([("c", kind)])).field("c").type

    found = column_without_views(pa.array(values, kind).slice(low, rows), plain)

    found.validate(full=True)
    assert found.type == plain
    assert found.to_pylist() == values[low : low + rows]


@pytest.mark.parametrize("lists", [pa.ListViewArray, pa.LargeListViewArray])
@given(
    views=st.lists(st.none() | st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=8),
    low=st.integers(0, 3),
)
def test_views_in_any_order_may_share_values(
    lists: type[pa.ListViewArray], views: list[tuple[int, int] | None], low: int
) -> None:
    # NULL may have a length, too.
    known = [view or (1, 2) for view in views]
    column = lists.from_arrays(
        pa.array([offset for offset, _ in known], lists_offset(lists)),
        pa.array([length for _, length in known], lists_offset(lists)),
        pa.array("abcdefgh"),
        mask=pa.array([view is None for view in views], pa.bool_()),
    )

    found = column_without_views(column.slice(low), pa.list_(pa.string()))

    found.validate(full=True)
    assert found.to_pylist() == [
        None if view is None else list("abcdefgh"[view[0] : view[0] + view[1]])
        for view in views[low:]
    ]


def lists_offset(lists: type[pa.ListViewArray]) -> pa.DataType:
    return pa.int64() if lists is pa.LargeListViewArray else pa.int32()


def test_int96_inside_views_is_marked_and_read() -> None:
    moments = [{"n": 1, "at": datetime(1600, 1, 1)}]  # noqa: DTZ001 (a wall clock)
    inner = pa.struct([("n", pa.int8()), ("at", pa.timestamp("us"))])
    column = pa.array([moments, None, []], pa.list_view(inner))
    file = io.BytesIO()
    pq.write_table(
        pa.table({"c": column, "n": [1, 2, 3]}), file, use_deprecated_int96_timestamps=True
    )

    with open_rows(pa.BufferReader(file.getvalue()), "parquet") as rows:
        [(_, batch)] = rows.batches(["c", "n"], 0, 3)

    assert batch["c"].to_pylist() == [moments, None, []]
    marked = [*batch.schema.field("c").type.value_type, batch.schema.field("n")]
    assert [is_zoneless(field) for field in marked] == [False, True, False]


def test_schema_without_views_is_left_as_it_is() -> None:
    schema = pa.schema([("a", pa.list_(pa.struct([("b", pa.map_(pa.string(), pa.int8()))])))])

    assert schema_without_views(schema) is schema
