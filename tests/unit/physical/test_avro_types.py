"""Avro schemas that cannot be read end with what is wrong."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from tidegate.physical.avro import AvroRows
from tidegate.physical.avro_container import write_container
from tidegate.physical.protocol import FIELD_ID


def _schema(**types: Any) -> dict[str, Any]:
    fields = [{"name": name, "type": kind} for name, kind in types.items()]
    return {"type": "record", "name": "table", "fields": fields}


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        (["null", "int", "string"], "a union of several types"),
        (["null"], "a union without a type"),
        ({"type": "array", "items": "null"}, "array or map of nothing"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 50}, "a decimal of 50 digits"),
        (["null", "table"], "a type within itself"),
    ],
    ids=["union", "only-null", "array-of-null", "wide-decimal", "recursive"],
)
def test_type_that_has_no_arrow_type_is_named(kind: Any, named: str) -> None:
    whole = write_container(_schema(a=kind), 0, b"")

    with pytest.raises(pa.ArrowNotImplementedError, match="Avro " + named.removeprefix("a ")):
        AvroRows(pa.BufferReader(whole))


@pytest.mark.parametrize(
    "schema",
    [
        "long",
        {},
        {"type": "record", "name": "t"},
        _schema(a="unheard-of"),
        _schema(a={"type": "map"}),
    ],
    ids=["no-record", "empty", "no-fields", "unknown-type", "map-without-values"],
)
def test_header_without_a_sound_schema_is_refused(schema: Any) -> None:
    with pytest.raises(pa.ArrowInvalid, match="schema"):
        AvroRows(pa.BufferReader(write_container(schema, 0, b"")))


def test_header_with_broken_json_is_refused() -> None:
    schema = json.dumps(_schema(a="long")).encode()
    whole = write_container(_schema(a="long"), 0, b"").replace(schema, b"{" * len(schema))

    with pytest.raises(pa.ArrowInvalid, match="no schema"):
        AvroRows(pa.BufferReader(whole))


@pytest.mark.parametrize("identity", ["1a", [1], {}])
def test_field_id_that_is_no_number_is_refused(identity: Any) -> None:
    schema = _schema(a="long")
    schema["fields"][0]["field-id"] = identity

    with pytest.raises(pa.ArrowInvalid, match="the field id of column a is no number"):
        AvroRows(pa.BufferReader(write_container(schema, 0, b"")))


def test_field_id_in_text_is_a_number() -> None:
    schema = _schema(a="long")
    schema["fields"][0]["field-id"] = "12"

    with AvroRows(pa.BufferReader(write_container(schema, 0, b""))) as rows:
        assert rows.schema.field("a").metadata == {FIELD_ID: b"12"}
