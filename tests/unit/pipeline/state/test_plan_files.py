"""Splits come back from a plan directory as they were, with each delete file written once."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.plan import Piece, Split, SubSplit
from tidegate.pipeline.state.plan_files import read_splits, write_splits
from tidegate.stage import layout
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from collections.abc import Sequence

STORAGE = LocalStorage()


def _ref(number: int) -> dict[str, Any]:
    return {"path": f"d{number // 2}", "content": "positions", "offset": number, "length": 9}


_lists = st.lists(st.integers(0, 9), unique=True, max_size=6).map(
    lambda numbers: [_ref(number) for number in numbers]
)
_changes = st.fixed_dictionaries(
    {"ordinal": st.integers(0, 3), "before": st.none() | _lists, "after": st.none() | _lists}
)
_details = (
    st.just({})
    | st.fixed_dictionaries({"deletes": _lists})
    | st.fixed_dictionaries({"change": _changes})
)


@st.composite
def _plans(draw: st.DrawFn) -> tuple[Split, ...]:
    pieces = [
        Piece(f"f{number}", 1, 1, details=details)
        for number, details in enumerate(draw(st.lists(_details, max_size=8)))
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

    deletes = [line["delete"] for line in lines if "delete" in line]
    assert len({ref["offset"] for ref in deletes}) == len(deletes)
    assert all("delete" not in line and "path" in str(line) for line in lines[len(deletes) :])
    assert "d0" not in str(lines[len(deletes) :])


def test_lists_that_grow_from_commit_to_commit_are_one_run_each(tmp_path: Path) -> None:
    refs = [_ref(number) for number in range(9)]
    changes = [{"before": refs[2:end], "after": refs[2 : end + 1]} for end in range(3, 9)]
    pieces = tuple(Piece("f", 1, 1, details={"change": change}) for change in changes)

    *_, line = _written([Split((SubSplit(pieces),), 1)], str(tmp_path))

    written = json.loads(line)["sub_splits"][0]["pieces"]
    assert [piece["details"]["change"]["after"] for piece in written] == [
        [[0, len(change["after"])]] for change in changes
    ]


def test_splits_that_name_their_deletes_themselves_are_read(tmp_path: Path) -> None:
    # As plans of earlier versions do.
    split = Split((SubSplit((Piece("f", 1, 1, details={"deletes": [_ref(1)]}),)),), 1)
    STORAGE.write_once(layout.splits_file(str(tmp_path)), f"{split.to_text()}\n".encode())

    assert tuple(read_splits(STORAGE, str(tmp_path))) == (split,)


def test_plan_without_deletes_is_nothing_but_its_splits(tmp_path: Path) -> None:
    splits = [Split((SubSplit((Piece(str(number), 1, 1),)),), 1) for number in range(600)]

    assert _written(splits, str(tmp_path)) == [split.to_text() for split in splits]
