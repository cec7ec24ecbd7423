"""Packing keeps every item, passes its target only for a single large one, and is repeatable."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidegate.plan.packing import pack

_weights = st.lists(st.integers(0, 30), max_size=60)


def _bins(weights: list[int], target: int, lookback: int) -> list[tuple[int, ...]]:
    return list(pack(range(len(weights)), weights.__getitem__, target, lookback))


@given(weights=_weights, target=st.integers(1, 40), lookback=st.integers(1, 12))
def test_each_item_is_in_one_bin_and_bins_keep_the_order(
    weights: list[int], target: int, lookback: int
) -> None:
    bins = _bins(weights, target, lookback)

    assert sorted(item for bin_ in bins for item in bin_) == list(range(len(weights)))
    assert all(list(bin_) == sorted(bin_) for bin_ in bins)
    assert [bin_[0] for bin_ in bins] == sorted(bin_[0] for bin_ in bins)


@given(weights=_weights, target=st.integers(1, 40), lookback=st.integers(1, 12))
def test_bin_passes_its_target_only_with_a_single_item_that_does(
    weights: list[int], target: int, lookback: int
) -> None:
    for bin_ in _bins(weights, target, lookback):
        loads = [weights[item] for item in bin_]
        assert sum(loads) <= target or len([load for load in loads if load]) == 1


@given(weights=_weights, target=st.integers(1, 40))
def test_lookback_of_one_keeps_the_order_across_bins(weights: list[int], target: int) -> None:
    assert [item for bin_ in _bins(weights, target, 1) for item in bin_] == list(
        range(len(weights))
    )


def test_later_item_fills_an_open_bin_within_the_lookback() -> None:
    assert _bins([6, 6, 4], 10, 2) == [(0, 2), (1,)]
    assert _bins([6, 6, 6, 4], 10, 2) == [(0,), (1, 3), (2,)]


def test_nothing_to_pack_gives_no_bins() -> None:
    assert _bins([], 10, 3) == []
