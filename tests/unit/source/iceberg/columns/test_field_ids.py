"""Files without field ids are read by the mapping, by names only if that is said (ICE-6.14)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from tidegate.errors import InvalidNameMapping, MissingFieldIds
from tidegate.source.iceberg.columns.field_ids import FieldIds
from tidegate.source.iceberg.columns.selection import Selection

OLD = Schema(NestedField(1, "key", LongType()), schema_id=0)
NEW = Schema(NestedField(1, "id", LongType()), NestedField(2, "v", StringType()), schema_id=1)
FILE = pa.schema([("key", pa.int64()), ("v", pa.string())])


def _ids(mapping: str | None, file: pa.Schema = FILE, **keys: Any) -> list[Any]:
    selection = Selection(
        {
            "schema_id": 1,
            "schema": NEW.model_dump_json(),
            "schemas": [OLD.model_dump_json(), NEW.model_dump_json()],
            "columns": ["id", "v"],
            "row_kind": "INSERT",
            "name_mapping": mapping,
        }
    )
    fields = FieldIds("lake.t", selection, **keys)
    return [column.key for column in fields.found(file, "f.parquet")]


def test_mapping_gives_ids_by_any_of_its_names() -> None:
    assert _ids('[{"field-id": 1, "names": ["id", "key"]}]') == [1, None]


def test_ids_of_the_file_itself_go_before_the_mapping() -> None:
    field = pa.field("v", pa.int64(), metadata={"PARQUET:field_id": "1"})

    assert _ids('[{"field-id": 2, "names": ["v"]}]', pa.schema([field])) == [1]


def test_file_without_ids_and_table_without_mapping_is_refused() -> None:
    with pytest.raises(MissingFieldIds, match=r"f\.parquet"):
        _ids(None)


def test_names_are_those_of_the_newest_schema_if_that_is_said() -> None:
    assert _ids(None, assume_names=True) == [None, 2]


def test_mapping_goes_before_assumed_names() -> None:
    assert _ids('[{"field-id": 1, "names": ["key"]}]', assume_names=True) == [1, None]


def test_file_without_columns_needs_no_ids() -> None:
    assert _ids(None, pa.schema([])) == []


@pytest.mark.parametrize("text", ["", "{", "{}", '[{"names": 7}]', "null"])
def test_mapping_that_is_none_is_named(text: str) -> None:
    with pytest.raises(InvalidNameMapping, match=r"lake\.t"):
        _ids(text)
