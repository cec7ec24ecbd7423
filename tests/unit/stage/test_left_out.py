"""Erased rows are left out, take away the row of their key, or empty their partition."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

import pyarrow as pa
import pytest

from tidegate.config import RowRule
from tidegate.model.erasure import Erasure
from tidegate.model.partition import Partition, PartitionField, Transform
from tidegate.read.erased_rows import fingerprints, kind_of
from tidegate.stage.left_out import LeftOut
from tidegate.stage.sub_split import StageSpec

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("region", pa.string()), ("mail", pa.string())]
)
ROWS = pa.RecordBatch.from_pylist(
    [
        {"id": 1, "region": "eu", "mail": "ada"},
        {"id": 2, "region": "eu", "mail": "bob"},
        {"id": 3, "region": "us", "mail": "ada"},
    ],
    SCHEMA,
)
BY_REGION = (PartitionField("region", "region", Transform.IDENTITY),)


def erased_by(**values: object) -> Erasure:
    kinds = [SCHEMA.field(name).type for name in values]
    arrays = [pa.array([it], kind) for it, kind in zip(values.values(), kinds, strict=True)]
    rows = fingerprints(arrays, "s")
    return Erasure(1, tuple(values), tuple(map(kind_of, kinds)), "s", rows, "ada", NOW)


def erased(column: str, value: object) -> Erasure:
    return erased_by(**{column: value})


def left(out: LeftOut) -> list[dict[str, object]]:
    return [row for batch in out.left([ROWS]) for row in batch.to_pylist()]


def test_rows_are_left_out_and_counted() -> None:
    out = LeftOut([erased("mail", "ada")], SCHEMA, StageSpec(), (), overwrites=False)

    assert [row["id"] for row in left(out)] == [2]
    assert (out.rows, out.partitions, out.schema) == (2, set(), SCHEMA)


def test_batch_of_which_nothing_is_left_is_not_yielded() -> None:
    out = LeftOut([erased("mail", "ada")], SCHEMA, StageSpec(), (), overwrites=False)

    assert list(out.left([ROWS.slice(0, 1)])) == []
    assert out.rows == 1


def test_rows_of_keys_become_removals_with_nothing_but_key_and_partition() -> None:
    spec = StageSpec(keys=("id",), fields=BY_REGION)
    out = LeftOut([erased("mail", "ada")], SCHEMA, spec, (), overwrites=False)

    assert left(out) == [
        {"id": 1, "region": "eu", "mail": None, "_change_type": "ERASED"},
        {"id": 2, "region": "eu", "mail": "bob", "_change_type": "INSERT"},
        {"id": 3, "region": "us", "mail": None, "_change_type": "ERASED"},
    ]
    assert out.rows == 2


def test_delete_stays_one_and_tells_no_erased_value() -> None:
    kinds = pa.array(["DELETE", "UPDATE_BEFORE", "UPDATE_AFTER"])
    changes = ROWS.append_column("_change_type", kinds)
    out = LeftOut(
        [erased("mail", "ada")], changes.schema, StageSpec(keys=("id",)), (), overwrites=False
    )

    (batch,) = out.left([changes])

    assert batch["_change_type"].to_pylist() == ["DELETE", "UPDATE_BEFORE", "ERASED"]
    assert batch["mail"].to_pylist() == [None, "bob", None]


def test_change_without_its_values_keeps_its_place_among_others() -> None:
    changes = ROWS.append_column("_change_ordinal", pa.array([7, 8, 9]))
    spec, unpublished = StageSpec(keys=("id",)), ("_change_ordinal",)
    out = LeftOut([erased("mail", "ada")], changes.schema, spec, unpublished, overwrites=False)

    (batch,) = out.left([changes])

    assert batch["mail"].to_pylist() == [None, "bob", None]
    assert batch["_change_ordinal"].to_pylist() == [7, 8, 9]


@pytest.mark.parametrize(("column", "value"), [("id", 1), ("region", "eu")])
def test_rows_that_are_told_by_what_stages_them_are_left_out(column: str, value: object) -> None:
    spec = StageSpec(keys=("id",), fields=BY_REGION)
    out = LeftOut([erased(column, value)], SCHEMA, spec, (), overwrites=False)

    assert all(row[column] != value for row in left(out))
    assert out.schema == SCHEMA


@pytest.mark.parametrize(("column", "value"), [("id", 1), ("region", "eu")])
def test_row_that_is_told_by_its_key_and_more_leaves_a_removal(column: str, value: object) -> None:
    spec = StageSpec(keys=("id",), fields=BY_REGION)
    by_both = erased_by(**{column: value, "mail": "ada"})

    found = left(LeftOut([by_both], SCHEMA, spec, (), overwrites=False))

    assert found == [
        {"id": 1, "region": "eu", "mail": None, "_change_type": "ERASED"},
        {"id": 2, "region": "eu", "mail": "bob", "_change_type": "INSERT"},
        {"id": 3, "region": "us", "mail": "ada", "_change_type": "INSERT"},
    ]


@pytest.mark.parametrize("order", [1, -1])
def test_row_whose_key_is_erased_leaves_nothing_whatever_else_names_it(order: int) -> None:
    spec = StageSpec(keys=("id",), fields=BY_REGION)
    both = [erased("id", 1), erased("mail", "ada")][::order]
    out = LeftOut(both, SCHEMA, spec, (), overwrites=False)

    assert [row["id"] for row in left(out)] == [2, 3]
    assert out.rows == 2


@pytest.mark.parametrize(("effect", "stays"), [("quarantine", False), ("hold", True)])
def test_row_that_a_rule_puts_aside_takes_no_other_row_away(
    effect: Literal["quarantine", "hold"], stays: bool
) -> None:
    rule = RowRule(name="no_eu", where="region <> 'eu'", on_failure=effect)
    spec = StageSpec(keys=("id",), fields=BY_REGION, rules=(rule,))

    found = left(LeftOut([erased("mail", "ada")], SCHEMA, spec, (), overwrites=False))

    assert [row["id"] for row in found] == ([1, 2, 3] if stays else [2, 3])


def test_rows_that_are_told_by_their_event_time_are_left_out() -> None:
    spec = StageSpec(keys=("id",), event_time="mail")
    out = LeftOut([erased("mail", "ada")], SCHEMA, spec, (), overwrites=False)

    assert [row["id"] for row in left(out)] == [2]


def test_partitions_of_rows_that_replace_are_told() -> None:
    spec = StageSpec(fields=BY_REGION)
    out = LeftOut([erased("mail", "ada")], SCHEMA, spec, (), overwrites=True)

    assert [row["id"] for row in left(out)] == [2]
    assert out.partitions == {Partition((("region", "eu"),)), Partition((("region", "us"),))}
