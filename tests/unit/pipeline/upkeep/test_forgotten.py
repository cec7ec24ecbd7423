"""What alone helps is said where a window can be told and read by nothing any more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.errors import StateFileDamaged, StateFileLost, WorkBehind
from tidegate.pipeline.upkeep.forgotten import Forgotten

LOST = StateFileLost(path="/lake/plan.json", remedy="replay it")


def _forgotten(*untold: int, lost: set[int]) -> Forgotten:
    announces: Any = SimpleNamespace(
        ledger=SimpleNamespace(name="orders"),
        roots=SimpleNamespace(work="/work"),
        untold=lambda: [SimpleNamespace(sequence=it, range=it) for it in untold],
    )
    return Forgotten(announces, lambda window: window in lost)


@pytest.mark.parametrize(
    ("untold", "lost", "expected"),
    [((), {1}, None), ((1, 2), {2, 3}, 2), ((1, 2), {1, 2}, 1), ((1, 2), set(), None)],
    ids=["all told", "second", "both", "source still gives them"],
)
def test_window_that_nothing_tells_and_the_source_lost_is_named(
    untold: tuple[int, ...], lost: set[int], expected: int | None
) -> None:
    found = _forgotten(*untold, lost=lost).find()

    assert (found.values["window"] if found else None) == expected


def test_lost_file_becomes_the_error_that_helps() -> None:
    with (
        pytest.raises(WorkBehind) as behind,
        _forgotten(4, lost={4}).naming(),
    ):
        raise LOST

    assert behind.value.__cause__ is LOST


def test_lost_file_says_itself_what_helps_where_that_is_possible() -> None:
    with pytest.raises(StateFileLost, match="replay it"), _forgotten(4, lost=set()).naming():
        raise LOST


def test_file_that_is_damaged_is_not_called_lost() -> None:
    damaged = StateFileDamaged(path="/lake/plan.json", found="x", remedy="move it")

    with pytest.raises(StateFileDamaged), _forgotten(4, lost={4}).naming():
        raise damaged
