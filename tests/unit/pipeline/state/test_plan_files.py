"""Splits come back from a plan directory as they were, with each delete file written once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.file_slice import Change, Delta, DeltaKind, FileSlice
from tidegate.model.plan import Piece, Split, SubSplit
from tidegate.pipeline.state.plan_files import read_splits, write_splits
from tidegate.stage import layout
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from collections.abc import Sequence

STORAGE = LocalStorage()


def _delta(number: int) -> Delta:
    return Delta(f"d{number // 2}", DeltaKind.VECTOR, "puffin", 9, 1, 1, offset=number)


_lists = st.lists(st.integers(0, 9), unique=True, max_size=6).map(
    lambda numbers: tuple(_delta(number) for number in numbers)
)
_changes = st.builds(
    Change, st.integers(0, 3), st.just(7), st.none() | _lists, st.none() | _lists, st.booleans()
)
_slices = st.builds(FileSlice, st.just("f"), deltas=_lists) | st.builds(
    FileSlice, st.just("f"), change=_changes
)


@st.composite
def _plans(draw: st.DrawFn) -> tuple[Split, ...]:
    pieces = [
        Piece(replace(slice, path=f"f{number}"), 1, 1)
        for number, slice in enumerate(draw(st.lists(_slices, max_size=8)))
    ]
    return tuple(
        Split((SubSplit(tuple(pieces[first : first + 2])),), 1)
        for first in range(0, len(pieces), 2)
    )


def _written(splits: Sequence[Split], folder: str) -> list[str]:
    write_splits(STORAGE, folder, splits)
    return Path(layout.splits_file(folder)).read_text().splitlines()


@given(_plans())
def test_splits_come_back_as_they_were(splits: tuple[Split, ...]) -> None:
    with TemporaryDirectory() as folder:
        _written(splits, folder)

        found = read_splits(STORAGE, folder)

        assert tuple(found) == splits
        assert [split.id for split in found[1:]] == [split.id for split in splits[1:]]


@given(_plans())
def test_each_delete_stands_in_a_plan_once(splits: tuple[Split, ...]) -> None:
    with TemporaryDirectory() as folder:
        lines = [json.loads(line) for line in _written(splits, folder)]

    deltas = [line["delta"] for line in lines if "delta" in line]
    assert len({delta["offset"] for delta in deltas}) == len(deltas)
    assert all("delta" not in line and "path" in str(line) for line in lines[len(deltas) :])
    assert "d0" not in str(lines[len(deltas) :])


def test_lists_that_grow_from_commit_to_commit_are_one_run_each(tmp_path: Path) -> None:
    deltas = tuple(_delta(number) for number in range(9))
    changes = [Change(0, 7, deltas[2:end], deltas[2 : end + 1]) for end in range(3, 9)]
    pieces = tuple(Piece(FileSlice("f", change=change), 1, 1) for change in changes)

    *_, line = _written([Split((SubSplit(pieces),), 1)], str(tmp_path))

    written = json.loads(line)["sub_splits"][0]["pieces"]
    assert [piece["slice"]["change"]["after"] for piece in written] == [
        [[0, len(change.after or ())]] for change in changes
    ]


def test_slices_that_are_read_share_each_delta(tmp_path: Path) -> None:
    pieces = tuple(Piece(FileSlice(name, deltas=(_delta(1),)), 1, 1) for name in ("a", "b"))
    _written([Split((SubSplit(pieces),), 1)], str(tmp_path))

    (split,) = read_splits(STORAGE, str(tmp_path))

    first, second = (piece.slice.deltas[0] for piece in split.sub_splits[0].pieces)
    assert first is second


def test_plan_without_deletes_is_nothing_but_its_splits(tmp_path: Path) -> None:
    splits = [
        Split((SubSplit((Piece(FileSlice(str(number)), 1, 1),)),), 1) for number in range(600)
    ]

    assert _written(splits, str(tmp_path)) == [split.to_text() for split in splits]
