"""Erased rows are those that a comparison with their values finds, whatever their types."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.erasure import Erasure, Fingerprint
from tidegate.read.erased_rows import ErasedRows, erasable_problem, fingerprints, kind_of

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SALT = "5a17"
WORDS = st.sampled_from(["", "a", "A", "ä", "a@b.c", "'", '"', "é" * 60, "12"])
NUMBERS = st.one_of(st.integers(-3, 3), st.sampled_from([-(2**63), 2**63 - 1, 12]))


def erasure(columns: dict[str, pa.Array], number: int = 1) -> Erasure:
    rows = fingerprints(list(columns.values()), SALT)
    kinds = tuple(kind_of(values.type) for values in columns.values())
    return Erasure(number, tuple(columns), kinds, SALT, rows, "ada", NOW)


@given(
    rows=st.lists(st.tuples(st.none() | WORDS, st.none() | NUMBERS), max_size=40),
    words=st.lists(WORDS, max_size=4),
    both=st.lists(st.tuples(WORDS, NUMBERS), max_size=4),
)
def test_rows_are_erased_that_have_the_values(
    rows: list[tuple[str | None, int | None]], words: list[str], both: list[tuple[str, int]]
) -> None:
    batch = pa.record_batch(
        {
            "word": pa.array([word for word, _ in rows], pa.string()),
            "number": pa.array([number for _, number in rows], pa.int64()),
        }
    )
    named = [
        erasure({"word": pa.array(words, pa.string())}, 1),
        erasure(
            {
                "word": pa.array([word for word, _ in both], pa.string()),
                "number": pa.array([number for _, number in both], pa.int64()),
            },
            2,
        ),
    ]

    left = ErasedRows(named, batch.schema).left(batch)

    expected = [row for row in rows if row[0] not in words and row not in both]
    assert list(zip(*(column.to_pylist() for column in left.columns), strict=True)) == expected


@pytest.mark.parametrize(
    ("values", "kinds"),
    [
        (["a", "ü" * 40], [pa.string(), pa.large_string(), pa.string_view()]),
        ([-1, 7], [pa.int8(), pa.int32(), pa.int64()]),
        ([7, 200], [pa.uint8(), pa.uint64(), pa.int64()]),
        ([date(1969, 12, 31)], [pa.date32(), pa.date64()]),
    ],
)
def test_value_has_one_fingerprint_in_all_types_of_its_kind(
    values: list[object], kinds: list[pa.DataType]
) -> None:
    found = {fingerprints([pa.array(values, kind)], SALT) for kind in kinds}
    encoded = fingerprints([pa.array(values, kinds[0]).dictionary_encode()], SALT)

    assert len(found) == 1
    assert kinds[0] not in {pa.string()} or {encoded} == found


def test_fingerprints_stay_what_they_are() -> None:
    """Erasures are kept for years: another hash would let their rows come back."""
    found = fingerprints([pa.array(["a@b.c", "ü" * 40]), pa.array([7, -1])], SALT)

    assert [(row.digest, row.hint) for row in found] == [
        ("115250102d74af9b7e7ab832a2a48380", 1663550331),
        ("c72dff8c6acfb77a2c3680ceb379a836", 3154405025),
    ]


def test_rows_of_other_salts_and_columns_are_no_equals() -> None:
    batch = pa.record_batch({"word": ["a", "b"]})
    named = Erasure(
        1, ("word",), ("text",), "other", fingerprints([pa.array(["a"])], SALT), "ada", NOW
    )
    elsewhere = erasure({"name": pa.array(["a"])})

    assert ErasedRows([named, elsewhere], batch.schema).left(batch).num_rows == 2
    assert ErasedRows([elsewhere], batch.schema).columns == ()


def test_column_that_became_a_type_that_is_not_compared_has_no_erased_row() -> None:
    batch = pa.record_batch({"word": pa.array([1.0, 2.0])})
    named = erasure({"word": pa.array([1])})

    assert ErasedRows([named], batch.schema).left(batch).num_rows == 2


@pytest.mark.parametrize(
    "kind",
    [pa.float64(), pa.timestamp("us"), pa.decimal128(9, 2), pa.binary(), pa.list_(pa.string())],
)
def test_type_without_one_text_for_a_value_is_refused(kind: pa.DataType) -> None:
    assert str(kind) in str(erasable_problem(kind))


def test_row_stays_erased_whatever_another_erasure_says_of_its_hint() -> None:
    batch = pa.record_batch({"word": ["a"], "number": pa.array([1])})
    (said,) = fingerprints([batch["number"]], SALT)
    other = Fingerprint("0" * 32, said.hint)
    named = [
        erasure({"word": batch["word"]}, 1),
        Erasure(2, ("number",), ("whole numbers",), SALT, (other,), "ada", NOW),
    ]

    assert ErasedRows(named, batch.schema).left(batch).num_rows == 0


def test_rows_of_all_erasures_by_the_same_columns_are_erased() -> None:
    batch = pa.record_batch({"word": ["a", "b", "c"]})
    named = [erasure({"word": pa.array([word])}, number) for number, word in ((1, "a"), (2, "c"))]

    assert ErasedRows(named, batch.schema).left(batch)["word"].to_pylist() == ["b"]
