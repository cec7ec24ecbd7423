"""Rows of Avro without a container are decoded as those in one, with or without their lengths."""

from __future__ import annotations

import io
import struct
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from tidegate.physical.avro_decoder import AvroDecoder

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "row",
    "fields": [
        {"name": "k", "type": ["null", "string"]},
        {"name": "n", "type": "long"},
        {"name": "inner", "type": {"type": "record", "name": "i", "fields": []}},
        {"name": "many", "type": {"type": "array", "items": ["null", "int"]}},
        {"name": "void", "type": "null"},
    ],
}
ROWS = [
    {"k": "a", "n": 1, "inner": {}, "many": [1, None], "void": None},
    {"k": None, "n": -5, "inner": {}, "many": [], "void": None},
]


def encoded(rows: list[dict[str, Any]], *, framed: bool) -> bytes:
    schema = fastavro.parse_schema(SCHEMA)
    parts = []
    for row in rows:
        file = io.BytesIO()
        fastavro.schemaless_writer(file, schema, row)
        length = struct.pack(">I", len(file.getvalue())) if framed else b""
        parts.append(length + file.getvalue())
    return b"".join(parts)


@pytest.mark.parametrize("framed", [False, True])
def test_rows_are_those_that_were_written(framed: bool) -> None:
    decoder = AvroDecoder(SCHEMA, framed=framed)

    found = decoder.decode(encoded(ROWS, framed=framed), 2, decoder.schema.names)

    assert found.to_pylist() == ROWS


@pytest.mark.parametrize("framed", [False, True])
def test_columns_are_those_that_are_wanted(framed: bool) -> None:
    decoder = AvroDecoder(SCHEMA, framed=framed)
    content = encoded(ROWS, framed=framed)

    assert decoder.decode(content, 2, ["n"]).to_pylist() == [{"n": 1}, {"n": -5}]
    assert decoder.decode(content, 2, []).num_rows == 2


@pytest.mark.parametrize("framed", [False, True])
def test_no_rows_have_all_columns(framed: bool) -> None:
    found = AvroDecoder(SCHEMA, framed=framed).decode(b"", 0, ["k", "n"])

    assert (found.num_rows, found.schema.names) == (0, ["k", "n"])


def test_lengths_that_do_not_fit_the_rows_are_refused() -> None:
    decoder = AvroDecoder(SCHEMA, framed=True)
    content = encoded(ROWS, framed=True)

    with pytest.raises(pa.ArrowInvalid, match="with their lengths"):
        decoder.decode(content, 1, ["k"])
    with pytest.raises(pa.ArrowInvalid):
        decoder.decode(content[:-1], 2, ["k"])


def test_union_of_several_types_is_refused_before_anything_is_decoded() -> None:
    fields = [{"name": "x", "type": ["string", "long"]}]

    with pytest.raises(pa.ArrowNotImplementedError):
        AvroDecoder({"type": "record", "name": "row", "fields": fields})
