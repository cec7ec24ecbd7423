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
        ("other", pa.string()),
        ("amount", pa.float64()),
    ]
)
BY = KeyedBy(mode="COMMIT_TIME_ORDERING", ordering=(), filling="nothing", key_fields=())


def tombstones(names: tuple[str, ...] = (), **properties: str) -> Tombstones:
    details = {
        "table_schema": encode_schema(TABLE),
        "names": names or TABLE.names,
        "keyed_by": BY.to_json(),
    }
    raw = {f"hoodie.table.{name.replace('_', '.')}": said for name, said in properties.items()}
    return Tombstones(SliceColumns(details), TableProperties("trips", raw))


def rows(
    keys: list[str], *, names: tuple[str, ...] = (), folder: str = "", **properties: str
) -> list[dict[str, Any]]:
    times = pa.repeat("20260101", len(keys))
    made = tombstones(names, **properties)
    return made.rows(folder, pa.array(keys, pa.string()), times).to_pylist()


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
        ("id,name", "id:7,name:x,id:8", {"id": 7, "name": "x,id:8"}),
        ("id,name", "id:7,name:x,name:y", {"id": 7, "name": "x,name:y"}),
        ("name,id", "name:x,id:7,id:8", {"id": 8, "name": "x,id:7"}),
        ("name,id", "name:__null__,id:8", {"id": 8}),
        ("name,other", "name:x,other:y,other:z", {}),
        ("name,id,other", "name:x,id:1,id:2,other:y", {"name": "x,id:1", "id": 2, "other": "y"}),
        ("name,id,other", "name:x,id:1,other:q,id:2,other:y", {}),
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


CLASS = "org.apache.hudi.keygen."


@pytest.mark.parametrize(
    ("generator", "expected"),
    [
        ({}, "name:7"),
        ({"keygenerator_type": "SIMPLE"}, "name:7"),
        ({"keygenerator_class": f"{CLASS}SimpleKeyGenerator"}, "name:7"),
        ({"keygenerator_class": f"{CLASS}NonpartitionedKeyGenerator"}, "name:7"),
        ({"keygenerator_type": "COMPLEX"}, "7"),
        ({"keygenerator_type": "COMPLEX_AVRO"}, "7"),
        ({"keygenerator_type": "GLOBAL_DELETE"}, "7"),
        ({"keygenerator_class": f"{CLASS}ComplexAvroKeyGenerator"}, "7"),
        ({"keygenerator_class": f"{CLASS}GlobalDeleteKeyGenerator"}, "7"),
    ],
)
def test_name_before_a_lone_text_is_part_of_it_unless_the_generator_names_keys(
    generator: dict[str, str], expected: str
) -> None:
    (found,) = rows(["name:7"], names=("name",), recordkey_fields="name", **generator)

    assert found == {"name": expected}


@pytest.mark.parametrize(
    ("fields", "generator", "keys"),
    [
        ("name", "SIMPLE", ["name:5", "z", "__null__"]),
        ("name", "COMPLEX", ["name:5", "z", "name:", "name:a,b"]),
        ("id", "SIMPLE", ["7", "id:8", "seven", "id:x", "9"]),
        ("id,name", "COMPLEX", ["id:7,name:x", "z", "id:x,name:y", "id:8,name:z", "id:9"]),
        ("day,id", "COMPLEX", ["day:2026-01-02,id:7", "day:20455,id:8", "day:x,id:9"]),
    ],
)
def test_key_is_read_alike_whatever_other_keys_stand_beside_it(
    fields: str, generator: str, keys: list[str]
) -> None:
    said = {"recordkey_fields": fields, "keygenerator_type": generator}

    assert rows(keys, **said) == [row for key in keys for row in rows([key], **said)]


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


def test_partial_rows_have_the_columns_that_key_and_folder_tell_and_keep_their_own() -> None:
    columns = {"id": [None, 8], "day": [None, date(2026, 1, 3)], "amount": [1.5, None]}
    kinds = {name: TABLE.field(name).type for name in columns}
    partial = pa.table({name: pa.array(values, kinds[name]) for name, values in columns.items()})
    made = tombstones(recordkey_fields="id", partition_fields="day")

    found = made.completed(partial, "2026-01-02", pa.array(["7", "8"]))

    assert found.schema == partial.schema
    assert found.to_pylist() == [
        {"id": 7, "day": date(2026, 1, 2), "amount": 1.5},
        {"id": 8, "day": date(2026, 1, 3), "amount": None},
    ]
