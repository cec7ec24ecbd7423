"""Row rules: who is put aside, who holds a partition, who is only counted."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.config import RowRule
from tidegate.errors import PredicateInvalid
from tidegate.stage.row_rules import Judged, RowRules

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.int64())])
POSITIVE_A = RowRule(name="positive_a", where="a >= 0", on_failure="quarantine")
POSITIVE_B = RowRule(name="positive_b", where="b >= 0", on_failure="quarantine")
SMALL_A = RowRule(name="small_a", where="a < 2", on_failure="hold")
SMALL_B = RowRule(name="small_b", where="b < 2", on_failure="warn")


def judged(rows: list[tuple[int | None, int | None]], *rules: RowRule) -> Judged:
    columns = [pa.array([row[index] for row in rows], pa.int64()) for index in (0, 1)]
    return RowRules(rules, SCHEMA).judge(pa.RecordBatch.from_arrays(columns, schema=SCHEMA))


def pairs(batch: pa.RecordBatch) -> list[tuple[int | None, int | None]]:
    return [(row["a"], row["b"]) for row in batch.to_pylist()]


def test_judge_without_rules_keeps_the_batch() -> None:
    found = judged([(1, 1)])

    assert (pairs(found.kept), found.quarantined, found.held, found.hits) == (
        [(1, 1)],
        (),
        {},
        {},
    )


def test_judge_null_fails_the_rule() -> None:
    found = judged([(None, 1), (1, 1)], POSITIVE_A)

    assert pairs(found.kept) == [(1, 1)]
    assert found.hits == {"positive_a": 1}


def test_judge_row_failing_two_rules_is_put_aside_once() -> None:
    found = judged([(-1, -1), (1, -1)], POSITIVE_A, POSITIVE_B)

    aside = {rule: pairs(rows) for rule, rows in found.quarantined}
    assert aside == {"positive_a": [(-1, -1)], "positive_b": [(1, -1)]}
    assert found.hits == {"positive_a": 1, "positive_b": 2}


def test_judge_hold_and_warn_keep_their_rows() -> None:
    found = judged([(1, 1), (5, 1), (1, 5)], SMALL_A, SMALL_B)

    assert found.kept.num_rows == 3
    assert {rule: rows.tolist() for rule, rows in found.held.items()} == {
        "small_a": [False, True, False]
    }
    assert found.hits == {"small_a": 1, "small_b": 1}


def test_judge_quarantined_row_holds_nothing() -> None:
    found = judged([(5, -1)], SMALL_A, POSITIVE_B)

    assert (found.held, found.hits) == ({}, {"positive_b": 1, "small_a": 0})


values = st.none() | st.integers(-2, 3)


@given(
    st.lists(st.tuples(values, values), min_size=1),
    st.permutations([POSITIVE_A, POSITIVE_B, SMALL_A, SMALL_B]),
)
def test_judge_any_order_of_rules_equals_one_row_at_a_time(
    rows: list[tuple[int | None, int | None]], rules: list[RowRule]
) -> None:
    found = judged(rows, *rules)

    kept = [row for row in rows if all(value is not None and value >= 0 for value in row)]
    assert pairs(found.kept) == kept
    assert sorted(
        map(str, kept + [row for _, b in found.quarantined for row in pairs(b)])
    ) == sorted(map(str, rows))
    held = [row[0] >= 2 for row in kept if row[0] is not None]
    by_rule = {rule: rows.tolist() for rule, rows in found.held.items()}
    assert by_rule == ({"small_a": held} if any(held) else {})
    assert found.hits == {
        "positive_a": sum(a is None or a < 0 for a, _ in rows),
        "positive_b": sum(b is None or b < 0 for _, b in rows),
        "small_a": sum(held),
        "small_b": sum(row[1] >= 2 for row in kept if row[1] is not None),
    }


def test_rules_predicate_that_does_not_fit_names_the_rule() -> None:
    rule = RowRule(name="known", where="amount > 0")

    with pytest.raises(PredicateInvalid, match=r"rows\.known\.where"):
        RowRules([rule], SCHEMA)


def test_what_took_the_place_of_an_erased_row_passes_every_rule() -> None:
    rows = pa.RecordBatch.from_pylist(
        [
            {"id": 1, "mail": None, "_change_type": "ERASED"},
            {"id": 2, "mail": None, "_change_type": "INSERT"},
            {"id": 3, "mail": "ada", "_change_type": None},
        ]
    )
    for effect in ("quarantine", "hold", "warn"):
        rule = RowRule(name="has_mail", where="mail IS NOT NULL", on_failure=effect)
        judged = RowRules([rule], rows.schema).judge(rows)

        assert judged.hits == {"has_mail": 1}
        assert [row["id"] for _, gone in judged.quarantined for row in gone.to_pylist()] == (
            [2] if effect == "quarantine" else []
        )
