"""Numbers by hash are right whatever the hashes are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.read.codes import row_codes
from tidegate.read.hashed_codes import hashed_codes
from tidegate.read.row_hash import hash_rows

COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "integers": (pa.int32(), st.integers(0, 2)),
    "floats": (pa.float64(), st.sampled_from([0.0, -0.0, float("nan"), 1.5])),
    "texts": (pa.string(), st.sampled_from(["", "a", "b"])),
    "booleans": (pa.bool_(), st.booleans()),
    "decimals": (pa.decimal128(9, 2), st.decimals(0, 1, places=1)),
    "lists": (pa.list_(pa.int8()), st.lists(st.integers(0, 1), max_size=2)),
    "voids": (pa.null(), st.none()),
    "structs": (pa.struct([("a", pa.int8())]), st.fixed_dictionaries({"a": st.integers(0, 1)})),
}


@pytest.mark.parametrize("collide", [False, True], ids=["hashed", "colliding"])
@pytest.mark.parametrize("kind", COLUMNS)
@given(drawn=st.data())
def test_numbers_are_equal_exactly_where_rows_are(
    kind: str, collide: bool, drawn: st.DataObject
) -> None:
    type_, values = COLUMNS[kind]
    column = pa.array(drawn.draw(st.lists(st.none() | values, max_size=12)), type_)
    hashes = hash_rows([column], len(column))
    if collide:
        hashes = np.zeros(len(column), np.uint64)

    codes = hashed_codes([column], hashes).tolist()

    exact = row_codes([column]).to_pylist()
    assert len(set(zip(codes, exact, strict=True))) == len(set(codes)) == len(set(exact))
