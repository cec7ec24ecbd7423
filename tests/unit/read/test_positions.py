"""Deleted positions against sets of numbers."""

from __future__ import annotations

from itertools import accumulate, pairwise

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tidegate.physical import RowGroup
from tidegate.read.positions import are_at, differing, ranges_with, united

sets = st.sets(st.integers(0, 40))


def _array(positions: set[int]) -> pa.Int64Array:
    return pa.array(sorted(positions), pa.int64())


@given(sets, st.integers(0, 40), st.integers(0, 20))
def test_are_at_any_window_equals_membership(positions: set[int], start: int, rows: int) -> None:
    found = are_at(_array(positions), start, rows)

    expected = [position in positions for position in range(start, start + rows)]
    assert (found.to_pylist() if found is not None else [False] * rows) == expected
    assert (found is None) == (not any(expected))


@given(st.none() | sets, st.none() | sets)
def test_differing_of_two_sets_is_their_symmetric_difference(
    one: set[int] | None, other: set[int] | None
) -> None:
    found = differing(
        None if one is None else _array(one), None if other is None else _array(other)
    )

    assert found.to_pylist() == sorted((one or set()) ^ (other or set()))


@given(st.lists(st.lists(st.integers(0, 40)), min_size=1))
def test_united_sets_are_ascending_and_unique(sets: list[list[int]]) -> None:
    found = united([pa.array(one, pa.int64()) for one in sets])

    assert found.to_pylist() == sorted({position for one in sets for position in one})


@given(sets, st.lists(st.integers(1, 7), min_size=1), st.data())
def test_ranges_with_positions_are_the_row_groups_that_hold_one(
    positions: set[int], sizes: list[int], data: st.DataObject
) -> None:
    groups = [RowGroup(size, 1) for size in sizes]
    start = data.draw(st.integers(0, sum(sizes)))
    end = data.draw(st.integers(start, sum(sizes)))

    found = ranges_with(_array(positions), groups, start, end)

    bounds = list(accumulate(sizes, initial=0))
    expected = {
        row
        for low, high in pairwise(bounds)
        if any(max(low, start) <= position < min(high, end) for position in positions)
        for row in range(max(low, start), min(high, end))
    }
    rows = [row for low, high in found for row in range(low, high)]
    assert rows == sorted(expected)
    assert all(left[1] < right[0] for left, right in pairwise(found))
