"""Changes have the kind that their writer gave them, and the number of their write (HUDI-R7)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tidegate.read.keyed_merge import KeyedRecords
from tidegate.source.hudi.reading.change_columns import (
    marked_partial,
    numbered,
    stays_a_row,
    told_apart,
)

WRITTEN = ["I", "U", "-U", "D", None, "?"]
ROWS = pa.table({"_change_type": pa.nulls(6, pa.string()), "_hoodie_operation": WRITTEN})


def test_kinds_of_a_changelog_are_those_of_the_writer() -> None:
    kinds = told_apart(ROWS, is_changelog=True).column("_change_type").to_pylist()

    assert kinds == ["INSERT", "UPDATE_AFTER", "UPDATE_BEFORE", "DELETE", "UPSERT", "UPSERT"]


@pytest.mark.parametrize(
    ("rows", "is_changelog"), [(ROWS, False), (ROWS.select(["_change_type"]), True)]
)
def test_other_rows_are_upserts(rows: pa.Table, *, is_changelog: bool) -> None:
    kinds = told_apart(rows, is_changelog=is_changelog).column("_change_type").to_pylist()

    assert kinds == ["UPSERT"] * 6


def test_row_before_an_update_is_a_row_although_it_deletes() -> None:
    flat = np.zeros(6, np.bool_)
    deleted = np.array([False, False, True, True, False, True])
    keys = pa.array(list("abcdef"))

    found = stays_a_row(KeyedRecords(ROWS, keys, deleted, flat))
    without = stays_a_row(KeyedRecords(ROWS.select(["_change_type"]), keys, deleted, flat))

    assert found.tolist() == [True, True, True, False, True, False]
    assert without.tolist() == (~deleted).tolist()


def test_number_and_mark_are_filled_in_only_where_they_are_asked_for() -> None:
    marked = marked_partial(pa.table({"_partial": pa.nulls(2, pa.bool_())}), is_partial=True)
    rows = pa.RecordBatch.from_pydict(
        {"_change_ordinal": pa.nulls(2, pa.int32()), "_partial": pa.array([None, True])}
    )

    assert marked.column("_partial").to_pylist() == [True, True]
    assert marked_partial(ROWS, is_partial=True) is ROWS
    assert numbered(rows, {"partition": "", "group": "", "ordinal": 3}).to_pylist() == [
        {"_change_ordinal": 3, "_partial": False},
        {"_change_ordinal": 3, "_partial": True},
    ]
    assert numbered(rows.select(["_partial"]), {"partition": "", "group": ""}).to_pylist() == [
        {"_partial": False},
        {"_partial": True},
    ]
