"""Columns move between Arrow and NumPy as they are, sliced and empty ones too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.physical.arrays import (
    FEW_CODES,
    boolean_column,
    dense_codes,
    distinct,
    flags,
    integer_column,
    integers,
    missing,
    repeated_text,
)

KINDS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
BYTES = st.lists(st.integers(0, 127))
SLICE = st.tuples(st.integers(0, 9), st.integers(0, 9))


@pytest.mark.parametrize("kind", KINDS)
@given(values=BYTES, cut=SLICE)
def test_integers_of_any_slice_are_its_values(
    kind: str, values: list[int], cut: tuple[int, int]
) -> None:
    column = pa.array(values, kind).slice(*cut)

    found = integers(column)

    assert found.tolist() == column.to_pylist()
    assert found.dtype == np.dtype(kind)


@given(values=st.lists(st.none() | st.integers(0, 9)), cut=SLICE)
def test_nulls_are_where_a_column_has_none(values: list[Any], cut: tuple[int, int]) -> None:
    column = pa.array(values, pa.int64()).slice(*cut)

    found = missing(column)

    expected = [value is None for value in column.to_pylist()]
    assert (found.tolist() if found is not None else [False] * len(column)) == expected
    assert (found is None) == (True not in expected)


@given(values=st.lists(st.booleans(), max_size=20), cut=SLICE)
def test_booleans_are_the_same_there_and_back(values: list[bool], cut: tuple[int, int]) -> None:
    packed = boolean_column(np.array(values, np.bool_))

    assert packed.to_pylist() == values
    assert flags(packed.slice(*cut)).tolist() == packed.slice(*cut).to_pylist()


@given(values=st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_integers_are_handed_to_arrow_as_they_are(values: list[int]) -> None:
    column = integer_column(np.array(values, np.int64))

    column.validate(full=True)
    assert column.to_pylist() == values


@pytest.mark.parametrize("size", [6, FEW_CODES + 1], ids=["few", "many"])
@given(values=st.lists(st.integers(0, 5)))
def test_dense_codes_use_each_number_and_lead_back(size: int, values: list[int]) -> None:
    new, old = dense_codes(np.array(values, np.intp), size)

    assert [old[code] for code in new.tolist()] == values
    assert set(new.tolist()) == set(range(len(old))) or not values
    assert sorted(set(values)) == old or (size == 6 and not values)


@given(values=st.lists(st.integers(-5, 5)), step=st.sampled_from([1, FEW_CODES]))
def test_distinct_values_are_numbered_from_the_smallest(values: list[int], step: int) -> None:
    spread = [value * step for value in values]

    codes, found = distinct(np.array(spread, np.int64))

    assert found == sorted(set(spread))
    assert [found[code] for code in codes.tolist()] == spread


def test_distinct_values_at_both_ends_of_the_type_are_told_apart() -> None:
    ends = [-(2**63), 2**63 - 1, -(2**63)]

    codes, found = distinct(np.array(ends, np.int64))

    assert [found[code] for code in codes.tolist()] == ends


@given(text=st.text(max_size=4), rows=st.integers(0, 9))
def test_repeated_text_stands_in_every_row(text: str, rows: int) -> None:
    column = repeated_text(text, rows)

    column.validate(full=True)
    assert column.to_pylist() == [text] * rows
