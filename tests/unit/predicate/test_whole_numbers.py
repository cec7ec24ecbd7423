"""Arithmetic with whole numbers against Python's, which have no width."""

from __future__ import annotations

import operator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import PredicateInvalid
from tidegate.predicate import Predicate

KINDS = {
    f"{sign}int{bits}": (0, (1 << bits) - 1) if sign else (-(1 << bits - 1), (1 << bits - 1) - 1)
    for sign in ("", "u")
    for bits in (8, 16, 32, 64)
}
COMPARED = {"<": operator.lt, "=": operator.eq, ">=": operator.ge}
Expression = tuple[str, Any]
"""SQL and the function of a row that it stands for."""


def both(sign: str, compute: Any) -> Any:
    def _both(sides: tuple[Expression, Expression]) -> Expression:
        (one, first), (other, second) = sides

        def value(row: dict[str, int | None]) -> int | None:
            left, right = first(row), second(row)
            return None if left is None or right is None else compute(left, right)

        return f"({one} {sign} {other})", value

    return _both


def remainder(left: int, right: int) -> int | None:
    """Of the sign of what is divided, as in SQL; NULL for what is divided by zero."""
    return None if right == 0 else (abs(left) % abs(right)) * (-1 if left < 0 else 1)


def absolute(inner: Expression) -> Expression:
    text, value = inner
    return f"abs({text})", lambda row: None if (found := value(row)) is None else abs(found)


def filled(inner: Expression) -> Expression:
    text, value = inner
    return f"coalesce({text}, 1)", lambda row: 1 if (found := value(row)) is None else found


def combined(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    pairs = st.tuples(inner, inner)
    return st.one_of(
        pairs.map(both("+", operator.add)),
        pairs.map(both("-", operator.sub)),
        pairs.map(both("*", operator.mul)),
        pairs.map(both("%", remainder)),
        inner.map(absolute),
        inner.map(filled),
    )


COLUMNS = st.sampled_from(["a", "b"]).map(lambda name: (name, operator.itemgetter(name)))
NUMBERS = st.sampled_from([-200, -1, 0, 2, 77, 300, 1 << 40])
LEAVES = COLUMNS | NUMBERS.map(lambda number: (str(number), lambda _: number))
EXPRESSIONS = st.recursive(LEAVES, combined, max_leaves=4)


def values_of(kind: str) -> st.SearchStrategy[int | None]:
    low, high = KINDS[kind]
    edges = sorted({low, low + 1, max(low, -1), 0, 1, 2, high // 2, high - 1, high})
    return st.none() | st.sampled_from(edges) | st.integers(low, high)


def batch_of(**columns: tuple[str, list[Any]]) -> pa.RecordBatch:
    kinds = {name: getattr(pa, kind)() for name, (kind, _) in columns.items()}
    return pa.record_batch({n: pa.array(found, kinds[n]) for n, (_, found) in columns.items()})


@given(
    EXPRESSIONS,
    st.sampled_from(sorted(COMPARED)),
    st.sampled_from([-40_000, 0, 5, 1 << 33]),
    st.sampled_from(sorted(KINDS)),
    st.sampled_from(sorted(KINDS)),
    st.data(),
)
def test_mask_any_arithmetic_is_exact_or_refused(
    computed: Expression, sign: str, bound: int, one: str, other: str, data: st.DataObject
) -> None:
    text, value = computed
    rows = data.draw(st.lists(st.tuples(values_of(one), values_of(other)), max_size=6))
    batch = batch_of(a=(one, [a for a, _ in rows]), b=(other, [b for _, b in rows]))
    found = [value({"a": a, "b": b}) for a, b in rows]

    try:
        # All literals, they would name no column.
        condition = f"{text} {sign} {bound} and (a = a or true) and (b = b or true)"
        mask = Predicate.parse(condition, batch.schema, "t").mask(batch).to_pylist()
    except PredicateInvalid as refused:
        assert "overflow" in str(refused) or "fit" in str(refused)  # noqa: PT017
        return

    compare = COMPARED[sign]
    assert mask == [each is not None and compare(each, bound) for each in found]


@pytest.mark.parametrize(
    ("kind", "values", "text", "expected"),
    [
        ("int16", [1, 300, 32_767, None], "x * 200 > 0", [True, True, True, False]),
        ("uint32", [0, 5], "x - 1 > 2", [False, True]),
        ("int8", [-128, 127], "0 - x > 0", [True, False]),
        ("int8", [-128, 1], "abs(x) = 128", [True, False]),
        ("int64", [(1 << 63) - 1, 1], "x + 1 > 5", [True, False]),
        ("int64", [(1 << 63) - 1, 1], "pow(x, 2) > 5", [True, False]),
        ("int64", [(1 << 63) - 1, 1], "(x + 1) * 1.5 > 5", [True, False]),
        ("int64", [1 << 40, 1], "x * x * x > 5", [True, False]),
        ("int64", [7, -7], "x * 2 // 4 = -3", [False, True]),
        ("int64", [7, 0], "case when x > 0 then x * 2 end + 1 = 15", [True, False]),
        ("int16", [300, 1], "cast(x * 200 as varchar) = '60000'", [True, False]),
        ("int16", [300, 1], "x * 200 in (60000, 2)", [True, False]),
        ("int16", [300, 1], "left('abc', x - 299) = 'a'", [True, False]),
    ],
    ids=lambda each: each if isinstance(each, str) and " " in each else "",
)
def test_mask_result_wider_than_the_column_is_exact(
    kind: str, values: list[Any], text: str, expected: list[bool]
) -> None:
    batch = batch_of(x=(kind, values))

    assert Predicate.parse(text, batch.schema, "t").mask(batch).to_pylist() == expected


def test_mask_result_that_fits_nowhere_is_refused_with_the_rule_named() -> None:
    batch = batch_of(x=("int64", [(1 << 63) - 1]))

    with pytest.raises(PredicateInvalid, match=r"rows\[0\].*overflow"):
        Predicate.parse("x * x * x > 5", batch.schema, "rows[0].where").mask(batch)
