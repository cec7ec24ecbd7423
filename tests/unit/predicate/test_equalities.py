"""The values that a condition names, and the conditions that name none."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest

from tidegate.predicate import Predicate, equalities

SCHEMA = pa.schema([("word", pa.string()), ("number", pa.int64()), ("day", pa.date32())])


def named(text: str) -> dict[str, list[object]] | None:
    found = equalities(Predicate.parse(text, SCHEMA, "--where"))
    return None if found is None else {name: values.to_list() for name, values in found.items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("word = 'a''b'", {"word": ["a'b"]}),
        ("7 = number", {"number": [7]}),
        ("number in (1, 2)", {"number": [1, 2]}),
        ("day = '2026-01-02'", {"day": [date(2026, 1, 2)]}),
        ("word in ('a', 'b') and (number = 7)", {"word": ["a", "b"], "number": [7]}),
    ],
)
def test_values_are_those_of_equal_rows(text: str, expected: dict[str, list[object]]) -> None:
    assert named(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "number > 7",
        "number <> 7",
        "not (number = 7)",
        "number not in (7, 8)",
        "word = 'a' or number = 7",
        "word = 'a' and word = 'b'",
        "number in (7, null)",
        "word = null",
        "word is null",
        "lower(word) = 'a'",
        "number = number",
        "word = 'a' and number > 7",
    ],
)
def test_other_conditions_name_none(text: str) -> None:
    assert named(text) is None
