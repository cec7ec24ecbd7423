"""Columns that are gone are named, with those that came instead."""

from __future__ import annotations

import pytest

from tidegate.model.plan import Pin
from tidegate.pipeline.load.gone_columns import notes_on_columns


def pin(*names: str) -> Pin:
    return Pin("table", None, tuple((name, "int64") for name in names))


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ("ab", "ab", None),
        ("ab", "ba", None),
        ("a", "ab", None),
        ("ab", "a", "had column b, this one has not: what was published before keeps it. "),
        ("ab", "ac", "had column b, this one has not: what was published before keeps it, and "),
        ("abc", "de", "had columns a, b, c, this one has not: what was published before keeps th"),
    ],
)
def test_columns_that_are_gone_are_named(before: str, now: str, said: str | None) -> None:
    found = list(notes_on_columns(pin(*before), pin(*now)))

    assert len(found) == (said is not None)
    assert all(said in note for note in found if said)
