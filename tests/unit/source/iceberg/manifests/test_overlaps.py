"""Ranges that do not overlap are marked, and only those."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidegate.source.iceberg.manifests.overlaps import Overlaps

ranges = st.tuples(st.integers(0, 12), st.integers(0, 4)).map(lambda it: (it[0], it[0] + it[1]))


@given(st.lists(st.none() | ranges, max_size=8), ranges, st.integers(0, 8))
def test_ranges_apart_are_those_that_comparing_each_finds(
    known: list[tuple[int, int] | None], asked: tuple[int, int], first: int
) -> None:
    apart = Overlaps(known).apart_from(*asked, first)

    expected = [
        found is not None and (found[0] > asked[1] or found[1] < asked[0])
        for found in known[first:]
    ]
    assert (apart.tolist() if apart is not None else [False] * len(known[first:])) == expected
