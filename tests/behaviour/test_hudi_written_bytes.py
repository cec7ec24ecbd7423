"""The tests' writer of Hudi's logs writes the bytes that Hudi itself wrote."""

from __future__ import annotations

import io
import json
import struct
from typing import TYPE_CHECKING, Any

import fastavro
import pytest

from golden_hudi import CASES, folder
from hudi_logs import AVRO, DELETE, DELETES, INSTANT, MAGIC, SCHEMA, block, rows_block

if TYPE_CHECKING:
    from collections.abc import Iterator

LOGGED = [
    case
    for case in CASES
    if any(word in case for word in ("mor_ord_", "mor_event", "mor_rollback"))
]


def stored(content: bytes) -> Iterator[tuple[bytes, int, dict[int, str], bytes]]:
    """Each block of a whole log: its bytes, type, header, and content."""
    position = 0
    while position < len(content):
        assert content.startswith(MAGIC, position)
        (length,) = struct.unpack_from(">Q", content, position + 6)
        whole = content[position : position + 14 + length]
        _, kind, pairs = struct.unpack_from(">III", whole, 14)
        at, header = 26, {}
        for _ in range(pairs):
            key, size = struct.unpack_from(">II", whole, at)
            header[key] = whole[at + 8 : at + 8 + size].decode()
            at += 8 + size
        (size,) = struct.unpack_from(">Q", whole, at)
        yield whole, kind, header, whole[at + 8 : at + 8 + size]
        position += len(whole)


def rewritten(kind: int, header: dict[int, str], content: bytes) -> bytes:
    """The same content, decoded and encoded again."""
    if kind == DELETE:
        version, length = struct.unpack_from(">II", content)
        found = fastavro.schemaless_reader(
            io.BytesIO(content[8 : 8 + length]), DELETES, None, return_record_name=True
        )
        file = io.BytesIO()
        fastavro.schemaless_writer(file, DELETES, found)
        return struct.pack(">II", version, len(file.getvalue())) + file.getvalue()
    if kind != AVRO:
        return content
    schema = fastavro.parse_schema(json.loads(header[SCHEMA]))
    _, count = struct.unpack_from(">II", content)
    rows: list[Any] = []
    position = 8
    for _ in range(count):
        (size,) = struct.unpack_from(">I", content, position)
        encoded = io.BytesIO(content[position + 4 : position + 4 + size])
        rows.append(fastavro.schemaless_reader(encoded, schema, None))
        position += 4 + size
    written = rows_block(header[INSTANT], rows, json.loads(header[SCHEMA]))
    ((_, _, _, made),) = stored(written)
    return made


@pytest.mark.parametrize("case", LOGGED)
def test_blocks_of_a_golden_table_are_written_byte_for_byte(case: str) -> None:
    seen = 0
    for log in folder(case).glob("**/.*.log.*"):
        if ".hoodie/" in log.as_posix() or log.suffix == ".crc":
            continue
        for whole, kind, header, content in stored(log.read_bytes()):
            assert block(kind, header, rewritten(kind, header, content)) == whole
            seen += 1
    assert seen
