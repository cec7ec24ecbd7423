"""Source commits and changed rows as tables."""

from __future__ import annotations

from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import values_of
from terminal import text_of
from tidegate.cli import changes_view
from tidegate.pipeline.upkeep.history import SourceInstant
from tidegate.source.timeline import InstantReport


@pytest.mark.parametrize(
    ("added", "removed", "text"),
    [
        pytest.param(5, None, "+5", id="added"),
        pytest.param(5, 0, "+5", id="none-removed"),
        pytest.param(1200, 7, "+1,200 −7", id="both"),
        pytest.param(None, None, "", id="unknown"),
    ],
)
def test_difference_of_a_commit_is_signed(
    added: int | None, removed: int | None, text: str
) -> None:
    assert changes_view.difference(added, removed) == text


def test_difference_of_a_listing_counts_changed_files() -> None:
    assert changes_view.difference(0, 1, 2) == "+0 −1, 2 changed"


@hypothesis.settings(max_examples=20)
@given(values_of(InstantReport), st.none() | st.integers(1, 9))
def test_instant_table_says_which_window_took_a_commit(
    report: InstantReport, window: int | None
) -> None:
    text = text_of(changes_view.instant_table([SourceInstant(report, window)], "UTC"))

    assert ("not yet" if window is None else f"window {window}") in text


@pytest.mark.parametrize(
    ("cell", "text"),
    [(None, "NULL"), ("[red]", "[red]"), (1.5, "1.5")],
    ids=["null", "markup", "number"],
)
def test_row_table_shows_cells_as_they_are(cell: Any, text: str) -> None:
    assert text in text_of(changes_view.row_table(["a"], [{"a": cell}]))
