"""Tests for truth, for difference and lists with NULL, against another engine's SQL."""

from __future__ import annotations

import itertools

import duckdb
import pyarrow as pa
import pytest

from tidegate.errors import PredicateInvalid
from tidegate.predicate import Predicate

BOOLS = [True, False, None]
COMBINED = list(itertools.product(BOOLS, BOOLS, [0, 1, 2, None], ["a", "ab", None]))
ROWS = pa.table(
    {
        "id": pa.array(range(len(COMBINED))),
        "b": pa.array([row[0] for row in COMBINED]),
        "c": pa.array([row[1] for row in COMBINED]),
        "x": pa.array([row[2] for row in COMBINED]),
        "s": pa.array([row[3] for row in COMBINED]),
    }
)
CONDITIONS = [
    "b is true",
    "b is false",
    "b is not true",
    "b is not false",
    "b IS\n NOT /* not */ TRUE",
    "b is -- false\n true",
    "not (b is true)",
    "not (b is not false)",
    "(b is true) is not true",
    "(b is true) = (c is false)",
    "(x > 1) is not true",
    "x > 1 is not true",
    "x > 1 and c is true or b is not false",
    "not x > 1 is true",
    "s like 'a%' is not true and c",
    "x in (1, null) is not true",
    "x between 1 and null is not false",
    "b = true",
    "not (b = true)",
    "b in (true)",
    "case b when true then c else x > 1 end is not true",
    "case when b is not true then 1 end = 1",
    "coalesce(b is true, c)",
    "s = 'is true' or b is true",
    "x is null is true",
    "(x is distinct from 1) and c",
    "c and x is distinct from 1",
    "not (x is distinct from null)",
    "x is not distinct from null",
    "(b is not distinct from c) or x > 1",
    "b is distinct from true",
    "x not in (1, null)",
    "x not in (1, 2)",
    "x in (1, null)",
    "not (x in (1, null))",
    "s not in ('a')",
    "x between 1 and null",
    "x not between 1 and null",
    "not (x between null and 1)",
    "x between x and 2",
    "x = null",
    "not (x = null)",
    "x = 1 or null",
    "x * 2 - 3 > 0 is not true",
    "nullif(x, 1) is null",
    "greatest(x, 1) = 1",
    "not (b and c)",
    "b or c is null",
]


@pytest.mark.parametrize("text", CONDITIONS)
def test_mask_condition_passes_the_rows_that_another_engine_selects(text: str) -> None:
    rows = ROWS  # noqa: F841 - the query names it
    expected = duckdb.sql(f"select id from rows where {text} order by id").fetchall()
    batch = ROWS.combine_chunks().to_batches()[0]

    mask = Predicate.parse(text, ROWS.schema, "t").mask(batch)

    assert batch.filter(mask).column("id").to_pylist() == [each for (each,) in expected]


@pytest.mark.parametrize(
    "text",
    [
        "x is distinct from 1 and c",
        "x is not distinct from 1 or c",
        "b and (x is distinct from 1 or c)",
    ],
)
def test_difference_that_would_be_taken_from_what_follows_is_refused(text: str) -> None:
    with pytest.raises(PredicateInvalid, match="in parentheses"):
        Predicate.parse(text, ROWS.schema, "t")
