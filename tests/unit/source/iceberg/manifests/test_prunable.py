"""What metadata is asked holds for every row that passes the filter (ICE-5.14)."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.expressions import AlwaysTrue, EqualTo, In, IsNull, NotEqualTo, NotNull, Or
from pyiceberg.expressions.visitors import expression_evaluator
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BooleanType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)

from tidegate.predicate import Predicate
from tidegate.source.iceberg.manifests.prunable import prunable

SCHEMA = Schema(
    NestedField(1, "i", IntegerType()),
    NestedField(2, "l", LongType()),
    NestedField(3, "s", StringType()),
    NestedField(4, "b", BooleanType()),
    NestedField(5, "d", DateType()),
    NestedField(6, "t", TimestampType()),
    NestedField(7, "z", TimestamptzType()),
    NestedField(8, "f", DoubleType()),
)
ARROW = pa.schema(
    [
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us")),
        ("z", pa.timestamp("us", "UTC")),
        ("f", pa.float64()),
    ]
)
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 (a wall clock)
FEW = st.integers(-2, 2)
TIMES = FEW.map(lambda days: EPOCH + timedelta(days=days))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": FEW,
    "l": FEW,
    "s": st.sampled_from(["", "a", "b", "ä"]),
    "b": st.booleans(),
    "d": TIMES.map(datetime.date),
    "t": TIMES,
    "z": TIMES.map(lambda it: it.replace(tzinfo=UTC)),
    "f": st.sampled_from([-1.5, 0.0, 2.0, float("nan")]),
}
ROWS = st.fixed_dictionaries({name: st.none() | found for name, found in VALUES.items()})


def _text(name: str, value: Any) -> str:
    if isinstance(value, datetime):
        return f"timestamp '{value.isoformat(' ')}'"
    if isinstance(value, date):
        return f"date '{value.isoformat()}'"
    return f"'{value}'" if name == "s" else str(value).lower()


@st.composite
def _compared(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(sorted(set(VALUES) - {"f"})))
    first, second = (_text(name, draw(VALUES[name])) for _ in range(2))
    sign = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
    if name == "b":
        return draw(st.sampled_from([f"b = {first}", "b", "b is null", f"b <> {first}"]))
    return draw(
        st.sampled_from(
            [
                f"{name} {sign} {first}",
                f"{first} {sign} {name}",
                f"{name} in ({first}, {second})",
                f"{name} not in ({first}, {second})",
                f"{name} between {first} and {second}",
                f"{name} is null",
                f"{name} is not null",
                "f > 0.5",
                "i + 1 > 1",
                "s like 'a%'",
            ]
        )
    )


FILTERS = st.recursive(
    _compared(),
    lambda inner: st.one_of(
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
        st.builds("not ({})".format, inner),
    ),
    max_leaves=4,
)


def _stored(value: Any) -> Any:
    """Return a value as Iceberg's metadata has it."""
    if isinstance(value, datetime):
        return (value.replace(tzinfo=None) - EPOCH) // timedelta(microseconds=1)
    return (value - EPOCH.date()).days if isinstance(value, date) else value


@given(text=FILTERS, rows=st.lists(ROWS, min_size=1, max_size=6))
def test_every_row_that_passes_holds_what_metadata_is_asked(
    text: str, rows: list[dict[str, Any]]
) -> None:
    batch = pa.RecordBatch.from_pylist(rows, schema=ARROW)
    passes = Predicate.parse(text, ARROW, "filter").mask(batch).to_pylist()
    holds = expression_evaluator(SCHEMA, prunable(SCHEMA, text), case_sensitive=True)

    for row, is_wanted in zip(rows, passes, strict=True):
        stored = Record(*(_stored(row[field.name]) for field in SCHEMA.fields))
        assert not is_wanted or holds(stored), (text, row)


@pytest.mark.parametrize("sign", ["=", "<>", "<", "<=", ">", ">=", "is distinct from"])
@pytest.mark.parametrize("form", ["i {} 0", "0 {} i", "not (i {} 0)", "not (0 {} i)"])
def test_comparison_at_its_bound_rules_out_no_row_that_passes(sign: str, form: str) -> None:
    text = form.format(sign)
    numbers = [-1, 0, 1, None]
    batch = pa.RecordBatch.from_arrays([pa.array(numbers, pa.int32())], ["i"])
    schema = Schema(NestedField(1, "i", IntegerType()))
    passes = Predicate.parse(text, batch.schema, "filter").mask(batch).to_pylist()

    holds = expression_evaluator(schema, prunable(schema, text), case_sensitive=True)

    asked = {number for number in numbers if holds(Record(number))}
    wanted = {number for number, is_wanted in zip(numbers, passes, strict=True) if is_wanted}
    assert wanted <= asked
    # The library lets NULL pass where it is compared with `<>`.
    assert "distinct" in sign or asked - wanted <= {None}


@given(text=FILTERS)
def test_nothing_is_asked_with_not(text: str) -> None:
    assert "Not(" not in repr(prunable(SCHEMA, text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i = 1", EqualTo("i", 1)),
        ("not (i <> 1)", EqualTo("i", 1)),
        ("1 = i", EqualTo("i", 1)),
        ("i in (1, 2)", In("i", {1, 2})),
        ("s is null", IsNull("s")),
        ("not (s is null)", NotNull("s")),
        ("i = 1 or l = 2", Or(EqualTo("i", 1), EqualTo("l", 2))),
        ("I = 1", EqualTo("i", 1)),
    ],
)
def test_filter_that_metadata_understands_is_asked_whole(text: str, expected: Any) -> None:
    assert repr(prunable(SCHEMA, text)) == repr(expected)


@pytest.mark.parametrize(
    "text",
    [None, "", "f = 1.5", "i + 1 = 2", "s like 'a%'", "upper(s) = 'A'", "i = 1.5", "nothing here"],
)
def test_filter_that_metadata_cannot_tell_for_sure_rules_nothing_out(text: str | None) -> None:
    assert prunable(SCHEMA, text) == AlwaysTrue()


def test_unsure_side_weakens_its_own_term_only() -> None:
    assert prunable(SCHEMA, "i = 1 and f > 2.0") == EqualTo("i", 1)
    assert prunable(SCHEMA, "i = 1 or f > 2.0") == AlwaysTrue()
    assert prunable(SCHEMA, "not (i = 1 or f > 2.0)") == NotEqualTo("i", 1)


def test_field_of_a_struct_is_asked_by_its_whole_name() -> None:
    schema = Schema(NestedField(1, "p", StructType(NestedField(2, "x", LongType()))))

    assert repr(prunable(schema, "p.x = 7")) == repr(EqualTo("p.x", 7))
