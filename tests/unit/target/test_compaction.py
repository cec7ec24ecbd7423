"""Which small files are joined, and what comes back when a window of a joined file changed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.publication import PublishedFile
from tidegate.target.compaction import CompactionRule, bins, ingredients, taken_apart


def file(number: int, length: int) -> PublishedFile:
    return PublishedFile(f"f{number}", length, "", 1, number, "p", f"staged/f{number}")


@given(st.lists(st.integers(1, 30), max_size=20), st.integers(1, 30), st.integers(1, 60))
def test_bins_are_small_files_in_order_up_to_a_size(
    lengths: list[int], small: int, target: int
) -> None:
    files = [file(number, length) for number, length in enumerate(lengths)]
    size = {item.name: item.length for item in files}

    found = bins(files, CompactionRule(small, target))

    flat = [name for joined in found for name in joined]
    assert len(flat) == len(set(flat))
    assert flat == sorted(flat, key=lambda name: int(name[1:]))
    assert all(size[name] < small for name in flat)
    assert all(len(joined) > 1 for joined in found)
    assert all(sum(map(size.__getitem__, joined)) <= target for joined in found)


def test_joined_file_consists_of_what_was_staged_however_often_it_is_joined() -> None:
    once = ingredients([file(1, 1), file(2, 1)], "retired/3")
    joined = PublishedFile("j", 2, "", 2, 2, "u", "units/j", made_of=once)

    twice = ingredients([joined, file(3, 1)], "retired/5")

    assert [part.staged for part in twice] == ["retired/3/f1", "retired/3/f2", "retired/5/f3"]


def test_file_is_taken_apart_if_one_of_its_windows_changed() -> None:
    made_of = ingredients([file(1, 1), file(2, 1)], "retired/3")
    joined = PublishedFile("j", 2, "", 2, 2, "u", "units/j", made_of=made_of)

    assert taken_apart([joined, file(3, 1)], {"1", "2", "3"}) == ((), ())
    going, (back,) = taken_apart([joined, file(3, 1)], {"2", "3"})
    assert (going, back.name, back.staged) == ((joined,), "f2", made_of[1].staged)
    assert taken_apart([joined, file(3, 1)], set()) == ((joined,), ())
