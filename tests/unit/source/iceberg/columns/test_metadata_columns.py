"""Metadata columns have the values of ICE-3.22 and ICE-8.2, and the types of the Spec."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from tidegate.model.file_slice import Change, FileSlice
from tidegate.model.plan import Piece
from tidegate.model.row_kind import RowKind
from tidegate.source.iceberg.columns.metadata_columns import TYPES, metadata_column

COMMITTED = datetime(2026, 2, 3, 4, 5, 6, 7000, UTC)
ROWS = pa.record_batch(
    {
        "_row_id": pa.array([None, 70, None], pa.int64()),
        "_last_updated_sequence_number": pa.array([None, 3, None], pa.int64()),
    }
)
DETAILS = {"snapshot": 11, "sequence": 5, "spec": 2, "first_row_id": 1000}


def _column(name: str, details: dict[str, Any], change: Change | None = None) -> pa.Array:
    piece = Piece(FileSlice("s3://lake/a.parquet", change=change, details=details), 3, 1)
    return metadata_column(name, ROWS, piece, 40, RowKind.INSERT)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("_file", ["s3://lake/a.parquet"] * 3),
        ("_pos", [40, 41, 42]),
        ("_spec_id", [2] * 3),
        ("_deleted", [False] * 3),
        ("_change_type", ["INSERT"] * 3),
        ("_change_ordinal", [0] * 3),
        ("_commit_snapshot_id", [11] * 3),
        ("_row_id", [1040, 70, 1042]),
        ("_last_updated_sequence_number", [5, 3, 5]),
    ],
)
def test_column_of_a_plain_read_is_made_from_the_piece(name: str, expected: list[Any]) -> None:
    found = _column(name, DETAILS)

    assert found.to_pylist() == expected
    assert found.type == TYPES[name]


def test_columns_of_a_change_name_its_commit() -> None:
    change = Change(3, 12, None, (), time=COMMITTED, sequence=7)

    assert _column("_commit_time", DETAILS, change).to_pylist() == [COMMITTED] * 3
    assert _column("_commit_sequence_number", DETAILS, change).to_pylist() == [7] * 3
    assert _column("_change_ordinal", DETAILS, change).to_pylist() == [3] * 3
    assert _column("_commit_snapshot_id", DETAILS, change).to_pylist() == [12] * 3


@pytest.mark.parametrize("name", ["_commit_time", "_commit_sequence_number"])
def test_columns_of_a_change_in_an_older_plan_are_null(name: str) -> None:
    found = _column(name, DETAILS, Change(3, 12, None, ()))

    assert (found.null_count, found.type) == (3, TYPES[name])


@pytest.mark.parametrize("name", ["_row_id", "_last_updated_sequence_number"])
def test_lineage_of_files_from_before_the_upgrade_is_null(name: str) -> None:
    assert _column(name, {**DETAILS, "first_row_id": None}).null_count == 3
