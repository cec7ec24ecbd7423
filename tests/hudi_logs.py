"""Write log blocks of Hudi, byte for byte, for cases that no golden table has."""

from __future__ import annotations

import io
import json
import struct
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAGIC = b"#HUDI#"
COMMAND, DELETE, AVRO, HFILE, PARQUET = 0, 1, 3, 4, 5
INSTANT, TARGET, SCHEMA, COMMAND_KIND, COMPACTED, PARTIAL = 0, 1, 2, 3, 4, 7
ROW = {
    "type": "record",
    "name": "row",
    "fields": [
        {"name": "_hoodie_commit_time", "type": ["null", "string"], "default": None},
        {"name": "_hoodie_record_key", "type": ["null", "string"], "default": None},
        {"name": "k", "type": ["null", "string"], "default": None},
        {"name": "n", "type": ["null", "long"], "default": None},
    ],
}


def block(kind: int, header: Mapping[int, str], content: bytes = b"", version: int = 1) -> bytes:
    """One block, with its lengths."""
    pairs = b"".join(
        struct.pack(">II", key, len(value.encode())) + value.encode()
        for key, value in header.items()
    )
    inner = struct.pack(">II", version, kind) + struct.pack(">I", len(header)) + pairs
    inner += struct.pack(">Q", len(content)) + content + struct.pack(">I", 0)
    length = len(inner) + 8
    return MAGIC + struct.pack(">Q", length) + inner + struct.pack(">Q", length + len(MAGIC))


def rows_block(
    instant: str,
    rows: Sequence[Mapping[str, Any]],
    columns: Mapping[str, Any] = ROW,
    **header: str,
) -> bytes:
    """A data block of Avro rows."""
    schema = fastavro.parse_schema(json.loads(json.dumps(columns)))
    encoded = []
    for row in rows:
        file = io.BytesIO()
        fastavro.schemaless_writer(file, schema, dict(row))
        encoded.append(struct.pack(">I", len(file.getvalue())) + file.getvalue())
    content = struct.pack(">II", 3, len(rows)) + b"".join(encoded)
    extra = {int(key.removeprefix("h")): value for key, value in header.items()}
    return block(AVRO, {INSTANT: instant, SCHEMA: json.dumps(columns), **extra}, content)


def rollback_block(instant: str, target: str) -> bytes:
    """A command that takes back the blocks of another instant."""
    return block(COMMAND, {INSTANT: instant, TARGET: target, COMMAND_KIND: "0"})


def parquet_block(instant: str, rows: pa.Table, schema: str, **header: str) -> bytes:
    """A data block that is a Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    extra = {int(key.removeprefix("h")): value for key, value in header.items()}
    return block(PARQUET, {INSTANT: instant, SCHEMA: schema, **extra}, sink.getvalue().to_pybytes())


_WRAPPED: dict[str, Any] = {
    "BooleanWrapper": "boolean",
    "IntWrapper": "int",
    "LongWrapper": "long",
    "FloatWrapper": "float",
    "DoubleWrapper": "double",
    "BytesWrapper": "bytes",
    "StringWrapper": "string",
    "DateWrapper": {"type": "int", "logicalType": "date"},
    "DecimalWrapper": {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15},
    "TimeMicrosWrapper": {"type": "long", "logicalType": "time-micros"},
    "TimestampMicrosWrapper": {"type": "long", "logicalType": "timestamp-micros"},
}
_WRAPPERS: list[Any] = [
    {"type": "record", "name": name, "fields": [{"name": "value", "type": kind}]}
    for name, kind in _WRAPPED.items()
]
_LOCAL_DATE = {
    "type": "record",
    "name": "LocalDateWrapper",
    "fields": [{"name": "value", "type": {"type": "int", "logicalType": "date"}}],
}
_ARRAY = {
    "type": "record",
    "name": "ArrayWrapper",
    "fields": [
        {
            "name": "wrappedValues",
            "type": ["null", {"type": "array", "items": ["null", *_WRAPPED, _LOCAL_DATE]}],
        }
    ],
}
_DELETED = {
    "type": "record",
    "name": "HoodieDeleteRecord",
    "fields": [
        {"name": "recordKey", "type": ["null", "string"], "default": None},
        {"name": "partitionPath", "type": ["null", "string"], "default": None},
        {"name": "orderingVal", "type": ["null", *_WRAPPERS, _ARRAY], "default": None},
    ],
}
DELETES = fastavro.parse_schema(
    {
        "type": "record",
        "name": "HoodieDeleteRecordList",
        "fields": [{"name": "deleteRecordList", "type": {"type": "array", "items": _DELETED}}],
    }
)
Ordering = tuple[str, Any]
"""The name of a wrapper without `Wrapper`, and what is in it."""


def wrapped(ordering: Ordering | None) -> tuple[str, dict[str, Any]] | None:
    """An ordering value as the writer's schema has it."""
    if ordering is None:
        return None
    name, value = ordering
    if name == "Array":
        inner = None if value is None else [wrapped(item) for item in value]
        return "ArrayWrapper", {"wrappedValues": inner}
    return f"{name}Wrapper", {"value": value}


def deletes_block(
    instant: str,
    deleted: Sequence[tuple[str, Ordering | None]],
    partition: str = "",
    version: int = 3,
) -> bytes:
    """A delete block: keys, with ordering values."""
    records = [
        {"recordKey": key, "partitionPath": partition, "orderingVal": wrapped(ordering)}
        for key, ordering in deleted
    ]
    file = io.BytesIO()
    fastavro.schemaless_writer(file, DELETES, {"deleteRecordList": records})
    content = struct.pack(">II", version, len(file.getvalue())) + file.getvalue()
    return block(DELETE, {INSTANT: instant}, content)
