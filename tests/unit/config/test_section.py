"""Paths of a pipeline file are absolute, and lie inside each other as directories do."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.config.section import absolute_path, lies_inside, local_path, read_word

PARTS = st.lists(st.sampled_from(["a", "ab", "a b"]), max_size=3)


@given(below=PARTS, above=PARTS, slash=st.booleans())
def test_path_lies_inside_exactly_the_directories_above_it(
    below: list[str], above: list[str], slash: bool
) -> None:
    path, root = PurePosixPath("/", *below), PurePosixPath("/", *above)

    found = lies_inside(str(path), f"{root}{'/' * slash}")

    assert found == path.is_relative_to(root)


@pytest.mark.parametrize(
    ("path", "root", "expected"),
    [
        ("/lake/../out", "/lake", False),
        ("/lake/./x/", "/lake/", True),
        ("/lakes", "/lake", False),
        ("/anything", "/", True),
    ],
)
def test_steps_and_slashes_of_a_path_do_not_hide_where_it_lies(
    path: str, root: str, expected: bool
) -> None:
    assert lies_inside(path, root) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("x/../y", "/home/y"),
        ("/x/", "/x"),
        ("file:///x", "/x"),
        ("s3://lake/x", "s3://lake/x"),
        ("${env:LAKE}/x", "${env:LAKE}/x"),
    ],
)
def test_path_is_made_absolute_unless_something_else_says_where_it_is(
    path: str, expected: str
) -> None:
    assert absolute_path(path, Path("/home")) == expected


def test_store_that_cannot_be_reached_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="s3://"):
        local_path("s3://lake/x")


@given(word=st.sampled_from(["full", "latest_inclusive"]), data=st.data())
def test_word_is_read_in_any_case_and_with_either_dash(word: str, data: st.DataObject) -> None:
    letters = [data.draw(st.sampled_from([it, it.upper()])) for it in word]
    written = "".join(letters).replace("_", data.draw(st.sampled_from("_-")))

    assert read_word(f" {written} ", ("full", "latest_inclusive"), {}) == word


@pytest.mark.parametrize(
    ("found", "problem"),
    [("ful", "full"), (7, "found 7"), ("later", "is not there yet")],
)
def test_word_that_is_none_of_them_is_refused(found: object, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_word(found, ("full", "earliest"), {"later": "is not there yet"})
