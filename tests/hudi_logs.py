"""Write log blocks of Hudi, byte for byte, for cases that no golden table has."""

from __future__ import annotations

import io
import json
import struct
from typing import TYPE_CHECKING, Any

import fastavro

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
