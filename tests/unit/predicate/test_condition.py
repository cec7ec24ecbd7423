"""SQL conditions against Python's own reading of them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import PredicateInvalid
from tidegate.predicate import Predicate

SCHEMA = pa.schema(
    [
        ("a", pa.int64()),
        ("b", pa.int64()),
        ("region", pa.string()),
        ("seen", pa.timestamp("us")),
        ("ok", pa.bool_()),
    ]
)


def rows_of(**columns: list[object]) -> pa.RecordBatch:
    size = len(next(iter(columns.values())))
    full = {field.name: columns.get(field.name, [None] * size) for field in SCHEMA}
    return pa.RecordBatch.from_pydict(full, schema=SCHEMA)


def passing(text: str, **columns: list[object]) -> list[bool]:
    return Predicate.parse(text, SCHEMA, "rows[0].where").mask(rows_of(**columns)).to_pylist()


def test_mask_null_operand_does_not_pass() -> None:
    assert passing("a >= 0", a=[1, None, -1]) == [True, False, False]


def test_mask_negated_null_does_not_pass() -> None:
    assert passing("not (a >= 0)", a=[1, None, -1]) == [False, False, True]


def test_mask_is_null_sees_null() -> None:
    assert passing("region is null", region=["eu", None]) == [False, True]


@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(-3, 3),
            st.none() | st.integers(-3, 3),
            st.sampled_from(["eu", "us", "", None]),
        )
    )
)
def test_mask_any_rows_equals_three_valued_oracle(
    rows: list[tuple[int | None, int | None, str | None]],
) -> None:
    a, b, region = ([row[index] for row in rows] for index in range(3))

    found = passing("a > b or region in ('eu', 'us')", a=a, b=b, region=region)

    expected = [
        (one is not None and two is not None and one > two) or place in {"eu", "us"}
        for one, two, place in zip(a, b, region, strict=True)
    ]
    assert found == expected


@pytest.mark.parametrize("values", [[], ["x"], ["x", None, "z"]])
def test_mask_that_no_column_decides_has_an_answer_for_each_row(values: list[object]) -> None:
    passes = passing("lower(coalesce('A', region)) = substr('bab', 2, 1)", region=values)

    assert passes == [True] * len(values)


def test_columns_several_named_gives_schema_order_once() -> None:
    assert Predicate.parse(
        "region = 'eu' and a > 1 and a < 5", SCHEMA, "source.read.filter"
    ).columns == ("a", "region")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("a >= 0 and", "unable to parse", id="cut-short"),
        pytest.param("amount > 0", "no column 'amount'; found: a, b", id="unknown-column"),
        pytest.param("a + 1", "found a value of type Int", id="no-condition"),
        pytest.param(
            "region > 3", "cannot compare string with numeric type", id="types-do-not-fit"
        ),
        pytest.param("sum(a) > 3", "other rows", id="aggregate"),
        pytest.param("count(*) > 3", "other rows", id="count"),
        pytest.param("max(a) over (partition by region) > 1", "other rows", id="window"),
        pytest.param("row_number() over (order by a) > 1", "other rows", id="row-number"),
        pytest.param("a > (select 1)", "other rows", id="sub-query"),
        pytest.param("last_value(a) > 1", "other rows", id="last-value"),
        pytest.param("quantile_cont(a, 0.5) > 1", "other rows", id="quantile"),
        pytest.param("date(region) > '2026-01-01'", "strptime", id="guessed-format"),
        pytest.param("ok is distinct from true and a > 1", "parentheses", id="cut-short"),
        pytest.param("seen > now()", "clock", id="now"),
        pytest.param("seen > CURRENT_TIMESTAMP", "clock", id="current-timestamp"),
        pytest.param("a > 0 as positive", "names its result", id="alias"),
        pytest.param("a b", "names its result", id="two-words"),
        pytest.param("1 = 1", "names no column", id="constant"),
        pytest.param("nosuch(a) > 1", "nosuch", id="unknown-function"),
    ],
)
def test_parse_what_cannot_be_a_row_condition_is_refused(text: str, problem: str) -> None:
    with pytest.raises(PredicateInvalid) as refused:
        Predicate.parse(text, SCHEMA, "rows[0].where")

    assert problem in refused.value.values["problem"]
    assert refused.value.values["where"] == "rows[0].where"


@pytest.mark.parametrize("function", ["strptime", "date"])
def test_mask_time_of_a_named_format_is_read(function: str) -> None:
    text = f"{function}(region, '%Y-%m-%d') >= '2026-02-01'"

    assert passing(text, region=["2026-02-01", "2026-01-31", None]) == [True, False, False]


def test_parse_literal_with_a_function_name_is_text() -> None:
    assert passing("region = 'now()'", region=["now()", "Agg"]) == [True, False]


def test_mask_value_that_cannot_be_cast_names_the_rule() -> None:
    predicate = Predicate.parse("cast(region as int) > 3", SCHEMA, "rows[2].where")

    with pytest.raises(PredicateInvalid, match=r"rows\[2\]\.where"):
        predicate.mask(rows_of(region=["eu"]))


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("ID > 1 and Region = 'ID'", [False, True, False]),
        ("lower(REGION) in ('id', 'eu') or iD = 3", [True, True, True]),
        ("id between 2 and 3 and ID <> 3", [False, True, False]),
    ],
    ids=["literal", "function", "both spellings"],
)
def test_columns_are_found_in_any_case_if_that_is_said(text: str, passes: list[bool]) -> None:
    batch = pa.record_batch({"id": [1, 2, 3], "region": ["EU", "ID", "us"]})

    predicate = Predicate.parse(text, batch.schema, "t", case_sensitive=False)

    assert predicate.mask(batch).to_pylist() == passes
    assert set(predicate.columns) <= set(batch.schema.names)


def test_column_in_another_case_is_unknown_otherwise() -> None:
    with pytest.raises(PredicateInvalid, match="no column 'ID'"):
        Predicate.parse("ID > 1", pa.schema([("id", pa.int64())]), "t")


def test_name_as_it_is_spelled_goes_before_any_other_case() -> None:
    schema = pa.schema([("id", pa.int64()), ("ID", pa.int64())])

    assert Predicate.parse("ID > 1", schema, "t", case_sensitive=False).columns == ("ID",)
    with pytest.raises(PredicateInvalid, match="no column 'Id'"):
        Predicate.parse("Id > 1", schema, "t", case_sensitive=False)
