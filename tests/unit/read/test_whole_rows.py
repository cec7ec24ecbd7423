"""Whole rows hash alike exactly where they are equal, however they lie in memory."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.read.codes import row_codes
from tidegate.read.whole_rows import hash_whole_rows
from unit.read.test_row_hash import COLUMNS

KINDS = {
    **{kind: COLUMNS[kind] for kind in ("floats", "texts", "maps", "structs", "nulls")},
    "doubles": (pa.float64(), st.sampled_from([0.0, -0.0, float("nan"), 1.5, 5e-324])),
    "texts that differ within": (
        pa.string(),
        st.sampled_from(["x" * 150 + middle + "x" * 150 for middle in "abc"]),
    ),
    "lists of floats": (
        pa.list_(pa.float64()),
        st.lists(st.sampled_from([0.0, -0.0, float("nan")]), max_size=2),
    ),
    "long decimals": (pa.decimal256(50, 2), st.sampled_from([Decimal("1.10"), Decimal("1.11")])),
}


@settings(max_examples=30)
@pytest.mark.parametrize("kind", KINDS)
@given(drawn=st.data())
def test_hashes_of_any_column_are_equal_exactly_where_values_are(
    kind: str, drawn: st.DataObject
) -> None:
    type_, values = KINDS[kind]
    column = pa.array(drawn.draw(st.lists(st.none() | values, min_size=1, max_size=12)), type_)
    part = column.slice(drawn.draw(st.integers(0, len(column) - 1)))

    hashes = list(zip(*(half.tolist() for half in hash_whole_rows([part], len(part))), strict=True))

    codes = row_codes([part]).to_pylist()
    assert len(set(zip(codes, hashes, strict=True))) == len(set(codes)) == len(set(hashes))
    whole = hash_whole_rows([column], len(column))[0].tolist()
    assert [first for first, _ in hashes] == whole[len(column) - len(part) :]


def test_columns_are_not_interchangeable() -> None:
    one, other = pa.array([1, 2]), pa.array([2, 1])

    first, _ = hash_whole_rows([one, other], 2)

    assert first[0] != first[1]


@pytest.mark.parametrize("rows", [0, 3])
def test_rows_without_columns_are_equal(rows: int) -> None:
    first, second = hash_whole_rows([], rows)

    assert first.tolist() == second.tolist() == [0] * rows
