"""Every key belongs to exactly one share, whatever its neighbours are."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tidegate.read.key_share import KeyShare, numbered_keys

KEYS = st.lists(st.one_of(st.text(max_size=20), st.none()))


@given(KEYS, st.integers(1, 50), st.lists(st.integers(0, 50)))
def test_shares_that_make_up_all_numbers_hold_each_key_once(
    keys: list[str | None], numbers: int, cuts: list[int]
) -> None:
    bounds = sorted({0, numbers, *(cut for cut in cuts if cut < numbers)})
    column = pa.array(keys, pa.string())

    held = [KeyShare(numbers, *bound).holds(column) for bound in pairwise(bounds)]

    assert np.sum(held, axis=0).tolist() == [1] * len(keys) if keys else not sum(map(len, held))


@given(KEYS, st.integers(1, 50), st.randoms())
def test_number_of_a_key_depends_on_the_key_alone(
    keys: list[str | None], numbers: int, random: object
) -> None:
    order = list(range(len(keys)))
    random.shuffle(order)  # type: ignore[attr-defined]
    column = pa.array(keys, pa.string())

    found = numbered_keys(column, numbers)

    again = numbered_keys(pa.array([keys[place] for place in order], pa.string()), numbers)
    assert again.tolist() == [found[place] for place in order]
    assert all(0 <= number < numbers for number in found)


def test_keys_are_spread_evenly() -> None:
    keys = pa.array([f"order {number}" for number in range(10_000)])

    counts = np.bincount(numbered_keys(keys, 10))

    assert counts.min() > 800
    assert counts.max() < 1_200
