"""Types are written as in Spark's DDL, in any spelling, and read back from their own text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.config.column_types import PLAIN, ColumnType, parse_type

_DIGITS = st.integers(1, 38).flatmap(lambda most: st.tuples(st.just(most), st.integers(0, most)))
_NAMES = st.sampled_from(["a", "B_1", "with space", "date", "<"])
TYPES = st.recursive(
    st.sampled_from(PLAIN).map(ColumnType) | _DIGITS.map(lambda it: ColumnType("decimal", it)),
    lambda inner: (
        inner.map(lambda it: ColumnType("array", children=(("element", it),)))
        | st.dictionaries(_NAMES, inner, min_size=1, max_size=3).map(
            lambda it: ColumnType("struct", children=tuple(it.items()))
        )
    ),
    max_leaves=5,
)


@given(TYPES)
def test_type_survives_its_text(kind: ColumnType) -> None:
    assert parse_type(str(kind)) == kind


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("BIGINT", "long"),
        (" Integer ", "int"),
        ("decimal( 10 , 2 )", "decimal(10,2)"),
        ("ARRAY<bigint>", "array<long>"),
        ("struct<a int, b: array<string>>", "struct<a: int, b: array<string>>"),
    ],
)
def test_type_is_written_in_one_way(text: str, expected: str) -> None:
    assert str(parse_type(text)) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("strings", "did you mean 'string'"),
        ("", "no complete type"),
        ("decimal", r"expected '\('"),
        ("decimal(39,0)", "1 to 38 digits"),
        ("decimal(2,3)", "1 to 38 digits"),
        ("array<int", "expected '>', found the end"),
        ("array<int>>", "one too many"),
        ("struct<>", "no complete type"),
        ("struct<a: int, a: int>", "twice"),
        ("int!", "no type at '!'"),
    ],
)
def test_what_is_no_type_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_type(text)
