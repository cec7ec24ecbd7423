"""Equal rows hash alike, however they lie in memory; unlike rows nearly never."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.read.codes import row_codes
from tidegate.read.row_hash import hash_rows

TEXTS = st.text(max_size=40) | st.sampled_from(["x" * 200, "x" * 199 + "y"])
COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "integers": (pa.int16(), st.integers(-3, 3)),
    "floats": (pa.float32(), st.sampled_from([0.0, -0.0, float("nan"), 1.5])),
    "texts": (pa.string(), TEXTS),
    "large texts": (pa.large_string(), TEXTS),
    "binaries": (pa.binary(), st.binary(max_size=9)),
    "fixed": (pa.binary(11), st.binary(min_size=11, max_size=11)),
    "decimals": (pa.decimal128(9, 2), st.decimals(-9, 9, places=2)),
    "booleans": (pa.bool_(), st.booleans()),
    "dates": (pa.date32(), st.dates()),
    "lists": (pa.list_(pa.string()), st.lists(TEXTS, max_size=3)),
    "fixed lists": (pa.list_(pa.int8(), 2), st.lists(st.integers(0, 2), min_size=2, max_size=2)),
    "maps": (
        pa.map_(pa.string(), pa.int8()),
        st.dictionaries(st.text(max_size=2), st.integers(0, 2), max_size=2).map(
            lambda found: list(found.items())
        ),
    ),
    "structs": (
        pa.struct([("a", pa.int8()), ("b", pa.list_(pa.int8()))]),
        st.fixed_dictionaries({"a": st.none() | st.integers(0, 2), "b": st.none() | st.just([1])}),
    ),
    "nulls": (pa.null(), st.none()),
}


@pytest.mark.parametrize("kind", COLUMNS)
@given(drawn=st.data())
def test_hashes_of_any_column_are_equal_exactly_where_values_are(
    kind: str, drawn: st.DataObject
) -> None:
    type_, values = COLUMNS[kind]
    column = pa.array(drawn.draw(st.lists(st.none() | values, min_size=1, max_size=12)), type_)
    start = drawn.draw(st.integers(0, len(column) - 1))
    part = column.slice(start)

    hashes = hash_rows([part], len(part)).tolist()

    codes = row_codes([part]).to_pylist()
    assert len(set(zip(codes, hashes, strict=True))) == len(set(codes)) == len(set(hashes))
    assert hashes == hash_rows([column], len(column)).tolist()[start:]


def test_hashes_of_known_rows_never_change() -> None:
    # An exchange may be written on one machine and read on another.
    columns = [pa.array([1, None]), pa.array(["a", "a text of more than eight bytes"])]

    assert hash_rows(columns, 2).tolist() == [13809433602476634942, 3392725265879747733]


def test_hashes_without_a_column_are_all_equal() -> None:
    assert len(set(hash_rows([], 3).tolist())) == 1
