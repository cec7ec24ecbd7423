"""A column of type unknown, Spark's void, is NULL in every row, however rows are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StructType, UnknownType

from small_iceberg import SmallIceberg
from tidegate import read_changes

if TYPE_CHECKING:
    from pathlib import Path

STORED = Schema(
    NestedField(1, "id", LongType()),
    NestedField(3, "st", StructType(NestedField(5, "k", LongType()))),
)
SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "v", UnknownType()),
    NestedField(
        3, "st", StructType(NestedField(4, "v", UnknownType()), NestedField(5, "k", LongType()))
    ),
)


def _table(root: Path, file_format: str) -> SmallIceberg:
    # Files have no such column.
    table = SmallIceberg(root, STORED, version=3)
    table.append([_stored(1, 1), _stored(2, None), _stored(2, None)], file_format)
    table.overwrite([_stored(1, 7), _stored(2, None), _stored(3, 3)], file_format)
    table.evolve(SCHEMA)
    return table


def _stored(number: int, k: int | None) -> dict[str, Any]:
    return {"id": number, "st": None if k is None else {"k": k}}


def _row(number: int, k: int | None) -> dict[str, Any]:
    return {"id": number, "v": None, "st": None if k is None else {"v": None, "k": k}}


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_changelog_with_a_void_column_has_what_changed(file_format: str, tmp_path: Path) -> None:
    table = _table(tmp_path, file_format)
    keys = {"identifier_columns": ["id"]}

    found = read_changes(table.config(read=keys), mode="changelog", start_exclusive=1).read_all()

    rows = found.select(["id", "v", "st", "_change_type"]).to_pylist()
    assert sorted(rows, key=lambda row: (row["id"], row["_change_type"])) == [
        {**_row(1, 7), "_change_type": "UPDATE_AFTER"},
        {**_row(1, 1), "_change_type": "UPDATE_BEFORE"},
        {**_row(2, None), "_change_type": "DELETE"},
        {**_row(3, 3), "_change_type": "INSERT"},
    ]


@pytest.mark.parametrize("mode", ["snapshot", "snapshot_diff"])
def test_void_column_is_null_in_every_row(mode: str, tmp_path: Path) -> None:
    table = _table(tmp_path, "parquet")

    found = read_changes(
        table.config(), mode=mode, start_exclusive=1 if mode == "snapshot_diff" else None
    ).read_all()

    assert found.column("v").to_pylist() == [None] * found.num_rows
    assert found.num_rows == (3 if mode == "snapshot" else 4)


def test_void_column_is_a_key_that_equals_itself(tmp_path: Path) -> None:
    table = SmallIceberg(tmp_path, STORED, version=3)
    table.append([_stored(1, 1), _stored(2, None)])
    table.delete([_stored(2, None)], (1, 2))
    table.evolve(SCHEMA)

    found = read_changes(table.config(), mode="snapshot").read_all()

    assert found.to_pylist() == [_row(1, 1)]
