"""A manifest's header tells the types of the columns when it was written, or nothing."""

from __future__ import annotations

import json

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DateType,
    DecimalType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)

from tidegate.source.iceberg.manifests.written_types import UNTOLD, written_types

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "price", DecimalType(9, 2)),
    NestedField(3, "at", StructType(NestedField(4, "day", DateType()))),
    NestedField(5, "tags", ListType(6, StringType(), False)),
    NestedField(7, "more", MapType(8, StringType(), 9, LongType(), False)),
)
HEADER = SCHEMA.model_dump_json()


def test_types_are_those_of_all_primitive_columns_at_any_depth() -> None:
    assert written_types(HEADER) == {
        1: LongType(),
        2: DecimalType(9, 2),
        4: DateType(),
        6: StringType(),
        8: StringType(),
        9: LongType(),
    }


def test_same_header_gives_the_same_object() -> None:
    assert written_types(HEADER) is written_types(str(HEADER))


def test_variant_beside_other_columns_leaves_their_types_known() -> None:
    raw = json.loads(HEADER)
    raw["fields"].append({"id": 20, "name": "any", "required": False, "type": "variant"})

    assert written_types(json.dumps(raw))[1] == LongType()


@pytest.mark.parametrize(
    "header",
    [None, "", "{", "[]", "7", '{"type": "struct", "fields": [{"id": 1}]}'],
    ids=["none", "empty", "cut", "list", "number", "half-a-field"],
)
def test_header_that_is_no_schema_tells_nothing(header: str | None) -> None:
    assert written_types(header) is UNTOLD


def test_type_that_is_unknown_tells_nothing() -> None:
    header = HEADER.replace('"date"', '"stardate"')

    assert written_types(header) is UNTOLD
