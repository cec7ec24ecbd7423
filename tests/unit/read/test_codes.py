"""Rows have the same number exactly if they are equal."""

from __future__ import annotations

import math
import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.read.codes import codes, row_codes

LEAVES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.sampled_from([0, 1, -(2**63), 2**63 - 1]),
    pa.float32(): st.sampled_from([0.0, -0.0, math.nan, 1.5]),
    pa.float64(): st.sampled_from([0.0, -0.0, math.nan, 1.5]),
    pa.string(): st.sampled_from(["", "a", "ab", "b"]),
    pa.large_binary(): st.binary(max_size=2),
    pa.bool_(): st.booleans(),
    pa.null(): st.none(),
}


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Make (type, strategy of its values) around others."""
    return st.one_of(
        inner.map(lambda it: (pa.list_(it[0]), st.lists(it[1], max_size=2))),
        inner.map(lambda it: (pa.large_list(it[0]), st.lists(it[1], max_size=2))),
        inner.map(lambda it: (pa.list_(it[0], 2), st.lists(it[1], min_size=2, max_size=2))),
        st.tuples(inner, inner).map(
            lambda two: (
                pa.struct([("x", two[0][0]), ("y", two[1][0])]),
                st.fixed_dictionaries({"x": two[0][1], "y": two[1][1]}),
            )
        ),
        inner.map(
            lambda it: (
                pa.map_(pa.string(), it[0]),
                st.lists(st.tuples(st.sampled_from("kl"), it[1]), max_size=2),
            )
        ),
    ).map(lambda it: (it[0], st.none() | it[1]))


columns = st.recursive(
    st.sampled_from(list(LEAVES)).map(lambda kind: (kind, st.none() | LEAVES[kind])),
    _nested,
    max_leaves=4,
).flatmap(lambda it: st.tuples(st.just(it[0]), st.lists(it[1], max_size=8)))


def _same(value: Any) -> Any:
    """Give what is equal exactly for equal values."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack("d", value)
    if isinstance(value, list | tuple):
        return tuple(map(_same, value))
    if isinstance(value, dict):
        return tuple(_same(value[name]) for name in sorted(value))
    return value


def _numbered(values: list[Any]) -> list[int]:
    seen: dict[Any, int] = {}
    return [seen.setdefault(_same(value), len(seen)) for value in values]


def _patterns_agree(found: pa.Int64Array, values: list[Any]) -> bool:
    numbers = found.to_pylist()
    return _numbered(numbers) == _numbered(values) and set(numbers) == set(range(len(set(numbers))))


@given(columns, st.integers(0, 3))
def test_codes_of_any_column_are_equal_exactly_for_equal_values(
    column: tuple[pa.DataType, list[Any]], start: int
) -> None:
    kind, values = column
    array = pa.array(values, kind).slice(start)

    assert _patterns_agree(codes(array), values[start:])


@given(st.data())
def test_row_codes_of_many_columns_are_those_of_the_rows(data: st.DataObject) -> None:
    rows = data.draw(st.integers(0, 6))
    kinds = data.draw(st.lists(st.sampled_from(list(LEAVES)), min_size=1, max_size=5))
    table = [
        data.draw(st.lists(st.none() | LEAVES[kind], min_size=rows, max_size=rows))
        for kind in kinds
    ]

    found = row_codes([pa.array(values, kind) for values, kind in zip(table, kinds, strict=True)])

    assert _patterns_agree(found, list(zip(*table, strict=True)))


def test_row_codes_whose_product_would_overflow_stay_apart() -> None:
    many = pa.array(range(1 << 12))

    found = row_codes([many] * 6)

    assert found.to_pylist() == list(range(1 << 12))


def test_codes_of_null_structs_ignore_what_stands_below() -> None:
    hidden = pa.StructArray.from_arrays(
        [pa.array([1, 2, 2])], ["x"], mask=pa.array([True, True, False])
    )

    first, second, third = codes(hidden).to_pylist()

    assert first == second != third


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.ExtensionArray.from_storage(
            pa.uuid(), pa.array([b"0" * 16, b"1" * 16, b"0" * 16], pa.binary(16))
        ),
    ],
    ids=["dictionary", "uuid"],
)
def test_codes_see_through_encodings(array: pa.Array) -> None:
    first, second, third = codes(array).to_pylist()

    assert first == third != second
