"""The row of a delete has the values that its key and its folder tell (HUDI-R6)."""

from __future__ import annotations

from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from tidegate.source.hudi.merge.tombstones import Tombstones
from tidegate.source.hudi.table.columns import KeyedBy, SliceColumns
from tidegate.source.hudi.table.properties import TableProperties
from tidegate.source.named_columns import encode_schema

TABLE = pa.schema(
    [
        ("_change_type", pa.string()),
        ("_hoodie_commit_time", pa.string()),
        ("_hoodie_record_key", pa.string()),
        ("_hoodie_partition_path", pa.string()),
        ("id", pa.int64()),
        ("day", pa.date32()),
        ("name", pa.string()),
        ("amount", pa.float64()),
    ]
)
BY = KeyedBy(mode="COMMIT_TIME_ORDERING", ordering=(), filling="nothing", key_fields=())


def rows(
    keys: list[str], *, names: tuple[str, ...] = (), folder: str = "", **properties: str
) -> list[dict[str, Any]]:
    details = {
        "table_schema": encode_schema(TABLE),
        "names": names or TABLE.names,
        "keyed_by": BY.to_json(),
    }
    raw = {f"hoodie.table.{name.replace('_', '.')}": said for name, said in properties.items()}
    tombstones = Tombstones(SliceColumns(details), TableProperties("trips", raw))
    times = pa.repeat("20260101", len(keys))
    return tombstones.rows(folder, pa.array(keys, pa.string()), times).to_pylist()


@pytest.mark.parametrize(
    ("fields", "key", "expected"),
    [
        ("id", "7", {"id": 7}),
        ("id", "id:7", {"id": 7}),
        ("name", "a,b:c", {"name": "a,b:c"}),
        ("name", "__null__", {}),
        ("name", "__empty__", {"name": ""}),
        ("id,name", "id:7,name:a,b:c", {"id": 7, "name": "a,b:c"}),
        ("id,name", "id:7,name:two\nlines", {"id": 7, "name": "two\nlines"}),
        ("day,id", "day:2026-01-02,id:7", {"day": date(2026, 1, 2), "id": 7}),
        ("id,name", "no such form", {}),
        ("id", "seven", {}),
        ("", "7", {}),
    ],
)
def test_columns_of_the_key_are_read_from_its_text(
    fields: str, key: str, expected: dict[str, Any]
) -> None:
    known = {
        "_change_type": "DELETE",
        "_hoodie_commit_time": "20260101",
        "_hoodie_record_key": key,
        "_hoodie_partition_path": "",
    }

    (found,) = rows([key], recordkey_fields=fields)

    assert found == {**dict.fromkeys(TABLE.names), **known, **expected}


def test_columns_of_the_partition_are_read_from_its_folder() -> None:
    (found,) = rows(["7"], names=("id", "day"), folder="2026-01-02", partition_fields="day")

    assert found == {"id": None, "day": date(2026, 1, 2)}


def test_folder_that_tells_no_value_leaves_its_columns_empty() -> None:
    (found,) = rows(
        ["7"], names=("id", "day"), folder="2026/01/02", partition_fields="day:TIMESTAMP"
    )

    assert found == {"id": None, "day": None}


def test_no_key_makes_no_row() -> None:
    assert rows([], recordkey_fields="id") == []
