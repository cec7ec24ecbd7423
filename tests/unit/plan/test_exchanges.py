"""An exchange reads what was read before, and gathers each bucket once per stage."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.exchange import Exchange
from tidegate.model.file_slice import FileSlice
from tidegate.model.plan import Piece, Split, SubSplit
from tidegate.plan.exchanges import gathering, spreading


def _splits(sizes: list[int]) -> list[Split]:
    return [
        Split(
            tuple(SubSplit((Piece(FileSlice(f"{number}-{part}"), 1, 1),)) for part in range(size)),
            size,
            "rows",
        )
        for number, size in enumerate(sizes)
    ]


@given(sizes=st.lists(st.integers(1, 3), max_size=3), stages=st.integers(1, 2))
def test_spreading_splits_read_what_they_read_before(sizes: list[int], stages: int) -> None:
    splits, begin = _splits(sizes), Exchange("g", stages, 4)

    found = list(spreading(splits, begin))

    assert [(it.weight, it.term) for it in found] == [(it.weight, it.term) for it in splits]
    assert [[part.pieces for part in it.sub_splits] for it in found] == [
        [part.pieces for part in it.sub_splits] for it in splits
    ]
    assert all(part.exchange == begin for it in found for part in it.sub_splits)
    assert all(it.stage == 0 for it in found)


@given(stages=st.integers(1, 3), buckets=st.integers(1, 9), weight=st.integers(0, 1_000))
def test_gathering_splits_are_one_for_each_bucket_of_each_later_stage(
    stages: int, buckets: int, weight: int
) -> None:
    """ICE-3.13."""
    found = list(gathering(Exchange("g", stages, buckets), weight, "rows"))

    parts = [part.exchange for it in found for part in it.sub_splits if part.exchange]
    assert [(it.stage, it.bucket) for it in parts] == [
        (stage, bucket) for stage in range(1, stages + 1) for bucket in range(buckets)
    ]
    assert [it.spreads for it in parts] == [it.stage < stages for it in parts]
    assert len({it.id for it in found}) == len(found)
    for stage in range(1, stages + 1):
        of_stage = sum(it.weight for it in found if it.stage == stage)
        assert weight - buckets < of_stage <= weight
