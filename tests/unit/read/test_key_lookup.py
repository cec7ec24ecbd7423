"""Keys are found as Arrow finds them, also where hashes collide."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.read.key_lookup import KeyLookup

TEXTS = st.text("ab", max_size=3)


@given(st.lists(TEXTS, unique=True), st.lists(st.one_of(TEXTS, st.none())), st.booleans())
def test_rows_are_found_with_the_index_of_their_key(
    known: list[str], asked: list[str | None], collide: bool
) -> None:
    lookup = KeyLookup(pa.array(known, pa.string()))
    lookup._is_exact = lookup._is_exact and not collide

    places, indices = lookup.find(pa.array(asked, pa.string()))

    assert list(places) == [place for place, key in enumerate(asked) if key in known]
    assert [known[index] for index in indices] == [key for key in asked if key in known]


@pytest.mark.parametrize("known", [1, 70_000])
def test_many_rows_are_found_as_arrow_finds_them(known: int) -> None:
    keys = pa.array([f"key {number}" for number in range(known)])
    asked = pa.array([f"key {number}" for number in range(0, 100_000, 3)])

    places, indices = KeyLookup(keys).find(asked)

    expected = pc.index_in(asked, value_set=keys)
    assert list(places) == list(np.flatnonzero(expected.is_valid().to_numpy(False)))
    assert list(indices) == expected.drop_null().to_pylist()


def test_each_of_many_keys_is_found_where_several_share_a_bin() -> None:
    """Bins of 100,000 keys hold up to half a dozen; the last of each is found, too."""
    keys = pa.array([f"key {number}" for number in range(100_000)])
    lookup = KeyLookup(keys)
    assert lookup._most > 3

    places, indices = lookup.find(keys)

    assert np.array_equal(places, np.arange(100_000))
    assert np.array_equal(indices, np.arange(100_000))
