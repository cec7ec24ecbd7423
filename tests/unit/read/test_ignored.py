"""Deletes that hit nothing are counted once, whoever reads them."""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from hooked_reader import piece_of
from tidegate.model.ignored import Ignored
from tidegate.read import ignored
from tidegate.read.ignored import ignored_deletes
from tidegate.read.removed import FileStates, Removed

if TYPE_CHECKING:
    from collections.abc import Sequence


ROWS = 10
WHOLE = [(0, ROWS)]


def removed(*positions: int, **unaddressed: int) -> Removed:
    return Removed(pa.array(positions, pa.int64()), unaddressed=unaddressed)


def counted(sides: FileStates, ranges: Sequence[tuple[int, int]]) -> Ignored:
    """Read a range of rows each in a task of its own."""
    told = []
    for start, rows in ranges:
        told.append(ignored_deletes(sides, piece_of("f.parquet", rows, row_start=start), ROWS))
    return functools.reduce(Ignored.plus, told)


@pytest.mark.parametrize(
    "ranges", [WHOLE, [(0, 4), (4, 6)], [(0, 0), (0, ROWS)]], ids=["whole", "cut", "no group"]
)
def test_deletes_of_a_file_that_hit_nothing_are_counted_once(
    ranges: list[tuple[int, int]],
) -> None:
    gone = removed(3, ROWS - 1, ROWS, ROWS + 7, lost=2)

    found = counted(FileStates(None, gone), ranges)

    assert found == Ignored(2, {"lost": 2})
    assert found.deletes == 4


def test_deletes_that_came_between_two_states_are_counted_and_no_others() -> None:
    before, after = removed(ROWS, old=1), removed(ROWS, ROWS + 1, old=1, new=5)

    assert counted(FileStates(before, after, kinds=True), WHOLE) == Ignored(1, {"new": 5})


@pytest.mark.parametrize(
    "sides",
    [FileStates(removed(ROWS, old=1), None, kinds=True), FileStates(None, removed(0, ROWS - 1))],
    ids=["file that goes", "positions that the file has"],
)
def test_deletes_that_are_no_news_are_not_counted(sides: FileStates) -> None:
    assert counted(sides, WHOLE) == Ignored()


def test_positions_past_the_end_are_told_with_their_file(monkeypatch: pytest.MonkeyPatch) -> None:
    # A logger of its own: other tests configure logging for the whole process.
    told: list[str] = []
    log = logging.Logger("told", logging.INFO)
    log.addFilter(lambda record: told.append(record.getMessage()) or True)
    monkeypatch.setattr(ignored, "_LOG", log)

    counted(FileStates(None, removed(ROWS, ROWS + 1)), WHOLE)

    assert told == ["f.parquet: 2 deleted positions past its end delete nothing"]
