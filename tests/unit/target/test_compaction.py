"""Which small files are joined, and what comes back when a window of a joined file changed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.publication import PublishedFile, StagedFile
from tidegate.target.compaction import CompactionRule, apart, bins, ingredients, taken_apart


def file(number: int, length: int) -> PublishedFile:
    return PublishedFile(f"f{number}", length, "", 1, number, "p", f"staged/f{number}")


def test_files_that_fill_a_size_exactly_are_joined() -> None:
    rule = CompactionRule(small_file=5, target_size=6)

    assert bins([file(number, 3) for number in range(4)], rule) == (("f0", "f1"), ("f2", "f3"))


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


def test_files_that_share_parts_over_several_steps_are_taken_apart_together() -> None:
    """A unit became two files, and one of them was joined again with one of another such unit."""
    a, b = ingredients([file(1, 1), file(2, 1)], "retired/2")
    y, z = ingredients([file(3, 1), file(4, 1)], "retired/3")

    def joined(name: str, *of: StagedFile) -> PublishedFile:
        return PublishedFile(name, 9, "", 2, 2, "u", f"units/{name}", made_of=of)

    standing = [joined("one", a, b), joined("both", a, b, y, z), joined("other", y, z)]

    going, coming = apart(standing, {"one"})

    assert [item.name for item in going] == ["one", "both", "other"]
    assert [item.name for item in coming] == ["f1", "f2", "f3", "f4"]
