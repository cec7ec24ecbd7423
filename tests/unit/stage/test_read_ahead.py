"""Reading ahead changes when items are made, and nothing else."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.stage.read_ahead import read_ahead

if TYPE_CHECKING:
    from collections.abc import Iterator


@given(st.lists(st.integers(), max_size=20), st.integers(1, 5))
def test_items_are_the_same_in_the_same_order(items: list[int], count: int) -> None:
    assert list(read_ahead(iter(items), count)) == items


def test_the_next_items_are_made_while_one_is_used() -> None:
    third_is_made = threading.Event()

    def items() -> Iterator[int]:
        yield 1
        yield 2
        third_is_made.set()
        yield 3

    reader = read_ahead(items(), 2)

    assert next(reader) == 1
    assert third_is_made.wait(10)
    assert list(reader) == [2, 3]


def test_no_more_items_are_made_than_asked_for() -> None:
    made: list[int] = []

    def items() -> Iterator[int]:
        for number in range(10):
            made.append(number)
            yield number

    reader = read_ahead(items(), 2)
    next(reader)
    reader.close()

    assert len(made) <= 1 + 2


def test_an_item_that_fails_raises_after_those_before_it() -> None:
    def items() -> Iterator[int]:
        yield 1
        msg = "damaged"
        raise OSError(msg)

    reader = read_ahead(items(), 3)

    assert next(reader) == 1
    with pytest.raises(OSError, match="damaged"):
        next(reader)
