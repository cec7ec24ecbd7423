"""Files are counted, and merging small ones makes never more of them (PC-O38)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from small_lake import day
from tidegate.model.file_sizes import FileSizes


@pytest.mark.parametrize(
    ("lengths", "small", "after"),
    [
        pytest.param([], 0, 0, id="none"),
        pytest.param([9], 1, 1, id="one that is small"),
        pytest.param([10], 0, 1, id="one at the limit"),
        pytest.param([9, 9, 9], 3, 1, id="into one"),
        pytest.param([9] * 5, 5, 2, id="into two"),
        pytest.param([100, 5, 3], 2, 2, id="beside a large one"),
    ],
)
def test_small_files_are_merged_into_files_of_the_target_size(
    lengths: list[int], small: int, after: int
) -> None:
    found = FileSizes.of(day(1), lengths, small_below=10, target_size=30)

    assert (found.small_files, found.files_after) == (small, after)


@given(st.lists(st.integers(0, 50)), st.integers(1, 60), st.integers(1, 60))
def test_merging_never_makes_more_files_or_loses_bytes(
    lengths: list[int], small_below: int, target_size: int
) -> None:
    found = FileSizes.of(day(1), lengths, small_below, target_size)

    assert found.files_after <= found.files == len(lengths)
    assert found.small_bytes <= found.bytes == sum(lengths)
    assert found.mean_bytes * found.files <= found.bytes
