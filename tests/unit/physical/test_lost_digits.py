"""A whole number is kept by a double if the double is printed as the same number."""

from __future__ import annotations

import json
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.physical.lost_digits import first_lost_in_objects, first_lost_text, has_large

DOUBLES = pa.float64()
FIRST = 2**53
WHOLE = st.one_of(
    st.integers(FIRST - 3, FIRST + 3),
    st.integers(-(10**24), 10**24),
    st.integers(0, 10**6).map(lambda number: number * 10**16),
)


@given(st.lists(WHOLE, max_size=5), st.sampled_from(["{}", " {} ", "\t{}"]))
def test_number_is_lost_if_another_one_is_printed_for_its_double(
    numbers: list[int], form: str
) -> None:
    lost = [at for at, number in enumerate(numbers) if Decimal(repr(float(number))) != number]
    texts = [form.format(number) for number in numbers]
    objects = "".join(f'{{"v": {text}}}\n' for text in texts).encode()

    in_texts = first_lost_text(pa.array(texts, pa.string()))
    in_objects = first_lost_in_objects(objects, [pa.field("v", DOUBLES)])

    assert in_texts == ((lost[0], texts[lost[0]]) if lost else None)
    assert in_objects == ((lost[0], "v", str(numbers[lost[0]])) if lost else None)


@pytest.mark.parametrize(
    "text", ["0.1", "1e300", "9007199254740993.5", "1.2345678901234567e+20", "x", None, "0" * 30]
)
def test_fraction_and_power_are_no_whole_numbers(text: str | None) -> None:
    assert first_lost_text(pa.array([text, None], pa.string())) is None


def test_number_without_a_double_is_lost() -> None:
    assert first_lost_text(pa.array(["1" * 5000])) == (0, "1" * 5000)


@pytest.mark.parametrize(
    ("column", "is_large"),
    [
        (pa.array([1.5, None, float("nan"), FIRST - 1.0]), False),
        (pa.array([float("nan"), 1.0 * FIRST]), True),
        (pa.array([-1.0 * FIRST]), True),
        (pa.array([float("-inf")]), True),
        (pa.array([], DOUBLES), False),
        (pa.array([None], DOUBLES), False),
        (pa.array([2**60]), False),
        (pa.array(["9007199254740993"]), False),
        (pa.array([[1.0], None, [1e17]]), True),
        (pa.array([{"a": [{"b": 1e17}]}]), True),
        (pa.array([{"a": [{"b": 1.0}], "c": 2**60}]), False),
    ],
)
def test_only_large_doubles_are_looked_at_once_more(column: pa.Array, is_large: bool) -> None:
    assert has_large(column) is is_large


def test_objects_are_looked_through_at_every_depth_and_only_at_doubles() -> None:
    number = FIRST + 1
    fields = [
        pa.field("n", pa.int64()),
        pa.field("s", pa.struct([("l", pa.list_(DOUBLES)), ("n", pa.int64())])),
    ]
    objects = [
        {"n": number, "s": {"n": number, "l": [1.5, 2]}, "other": number},
        {"s": None},
        {"s": {"l": None}},
        {"s": {"l": [1, number]}},
    ]
    text = "\ufeff" + " ".join(json.dumps(one) for one in objects[:2])
    text += "".join(json.dumps(one) for one in objects[2:])

    assert first_lost_in_objects(text.encode(), fields) == (3, "s", str(number))
