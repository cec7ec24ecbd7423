"""The difference of two bags equals that of two counters, however many buckets there are."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.read import row_difference
from tidegate.read.row_difference import HashedRows, Pairs, buckets_for, excess

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidegate.read.whole_rows import WholeHashes

ROWS = st.lists(st.integers(0, 6), max_size=20)


def hashed(rows: list[int]) -> WholeHashes:
    # The second half alone tells 0 from 5, and 1 from 6.
    values = np.asarray(rows, np.uint64)
    return values % np.uint64(5), values


def bag(into: ExitStack, folder: Path, rows: list[int], cut: int, buckets: int) -> HashedRows:
    made = into.enter_context(HashedRows(folder, buckets))
    for start, part in ((0, rows[:cut]), (cut, rows[cut:])):
        made.add(hashed(part), np.arange(start, start + len(part), dtype=np.int64))
    return made


def bags(
    into: ExitStack, old: list[int], new: list[int], cut: int, buckets: int
) -> Iterator[HashedRows]:
    folder = Path(into.enter_context(TemporaryDirectory()))
    for name, rows in (("old", old), ("new", new)):
        yield bag(into, folder / name, rows, min(cut, len(rows)), buckets)


@given(old=ROWS, new=ROWS, cut=st.integers(0, 9), buckets=st.integers(1, 3))
def test_excess_is_the_difference_of_counters(
    old: list[int], new: list[int], cut: int, buckets: int
) -> None:
    with ExitStack() as stack:
        found = list(excess(*bags(stack, old, new, cut, buckets)))

    removed = [number for one, _ in found for number in one.tolist()]
    added = [number for _, other in found for number in other.tolist()]
    assert len(set(removed)) == len(removed)
    assert len(set(added)) == len(added)
    assert Counter(old[number] for number in removed) == Counter(old) - Counter(new)
    assert Counter(new[number] for number in added) == Counter(new) - Counter(old)


@given(old=ROWS, new=ROWS, buckets=st.integers(1, 3))
def test_pairs_are_rows_whose_key_both_bags_have_once(
    old: list[int], new: list[int], buckets: int
) -> None:
    with ExitStack() as stack:
        pairs = Pairs(*bags(stack, old, new, 0, buckets))

    common = Counter(old).keys() & Counter(new).keys()
    once = {key for key in common if Counter(old)[key] == Counter(new)[key] == 1}
    assert {(old[one], new[other]) for one, other in zip(pairs.old, pairs.new, strict=True)} == {
        (key, key) for key in once
    }
    assert pairs.old.tolist() == sorted(pairs.old.tolist())
    assert pairs.repeated == len(common - once)


@pytest.mark.parametrize(("rows", "buckets"), [(0, 1), (8, 1), (9, 2), (16, 2), (17, 3)])
def test_bucket_has_a_bounded_number_of_rows(
    monkeypatch: pytest.MonkeyPatch, rows: int, buckets: int
) -> None:
    monkeypatch.setattr(row_difference, "BUCKET_ROWS", 8)

    assert buckets_for(rows) == buckets
