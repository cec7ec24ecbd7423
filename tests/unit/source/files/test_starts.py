"""`source.start` is resolved to the listing before the first change that it asks for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.config import Start
from tidegate.errors import InstantNotFound
from tidegate.model.instant import Instant
from tidegate.source.files.starts import before_time, first_checkpoint

NOW = datetime(2026, 11, 21, tzinfo=UTC)
LISTINGS = [
    Instant(f"{number:06d}-{'abc'[number - 1]}", NOW + timedelta(hours=number))
    for number in (1, 2, 3)
]


def _start(said: Any, known: list[Instant] = LISTINGS) -> Instant | None:
    return first_checkpoint(known, lambda: known, Start.model_validate(said), "lake")


@pytest.mark.parametrize(
    ("said", "number"),
    [
        ("full", None),
        ("earliest", None),
        ("latest", 3),
        ({"after": "2"}, 2),
        ({"from": "2"}, 1),
        ({"from": "1"}, None),
        ({"after": "000002-b"}, 2),
        ({"from": "000003-c"}, 2),
        ({"after": (NOW + timedelta(hours=2)).isoformat()}, 2),
        ({"from": (NOW + timedelta(hours=2)).isoformat()}, 1),
        ({"after": NOW.isoformat()}, None),
    ],
    ids=str,
)
def test_start_is_the_listing_before_the_first_change(said: Any, number: int | None) -> None:
    assert _start(said) == (None if number is None else LISTINGS[number - 1])


@pytest.mark.parametrize("said", ["full", "latest", {"after": "2"}, {"from": NOW.isoformat()}])
def test_folder_without_a_listing_is_read_from_its_beginning(said: Any) -> None:
    assert _start(said, []) is None


@pytest.mark.parametrize("text", ["7", "000002-x", "2026-11-21T00:00:00", "yesterday"])
def test_text_that_is_no_listing_and_no_time_with_a_zone_is_named(text: str) -> None:
    with pytest.raises(InstantNotFound, match=text):
        _start({"after": text})


def test_moments_are_asked_for_a_time_alone() -> None:
    def refuse() -> list[Instant]:
        raise AssertionError

    for said in ("full", "latest", {"after": "2"}):
        first_checkpoint(LISTINGS, refuse, Start.model_validate(said), "lake")


@given(
    hours=st.lists(st.integers(0, 5)).map(sorted), asked=st.integers(0, 5), inclusive=st.booleans()
)
def test_listings_before_a_time_are_those_with_an_earlier_one(
    hours: list[int], asked: int, inclusive: bool
) -> None:
    known = [Instant(str(place), NOW + timedelta(hours=it)) for place, it in enumerate(hours)]

    found = before_time(known, NOW + timedelta(hours=asked), inclusive=inclusive)

    wanted = [it for it in hours if it < asked + inclusive]
    assert found == known[: len(wanted)]
