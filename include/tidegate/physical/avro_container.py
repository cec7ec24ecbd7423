"""Read Avro container files: the header, the positions of blocks, and their bytes. Knows no types.

Each block begins with its counts of rows and bytes, so that a range of rows is found without
decoding the rows before it.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa

from tidegate.physical.avro_codecs import CODECS, Decompress
from tidegate.physical.protocol import RowGroup

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Buffer = bytes | memoryview

_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
_LOOK_AHEAD = 1 << 20
"""Bytes per request while locating blocks, which an object store serves one by one."""


@dataclass(frozen=True)
class Block:
    """One block of a file."""

    rows: int
    offset: int
    """Position of its counts."""
    start: int
    """Position of its rows, which may be compressed."""
    end: int
    """One past its last row; the sync marker follows."""

    @property
    def row_group(self) -> RowGroup:
        """The block as a part of a file."""
        return RowGroup(self.rows, self.end - self.start, self.offset)


class AvroContainer:
    """One open file.

    Args:
        file: open for random reads.

    Raises:
        OSError, pa.ArrowException: it is not an Avro file, or is incomplete.
    """

    def __init__(self, file: pa.NativeFile) -> None:
        self._file = file
        reader = io.BufferedReader(file, _LOOK_AHEAD)
        if reader.read(len(_MAGIC)) != _MAGIC:
            problem = "no Avro header"
            raise pa.ArrowInvalid(problem)
        metadata = _metadata(reader)
        self._decompress = _codec(metadata)
        self.schema: Any = _schema(metadata)
        self.blocks = _blocks(reader, _exactly(reader, _SYNC_BYTES), file.size())
        # Closing it would close the file.
        reader.detach()

    def rows_of(self, blocks: Sequence[Block]) -> bytes:
        """Return the encoded rows of adjacent blocks in one piece.

        Raises:
            OSError, pa.ArrowException: they cannot be read or decompressed.
        """
        if not blocks:
            return b""
        first = blocks[0].start
        self._file.seek(first)
        read = memoryview(self._file.read(blocks[-1].end - first))
        parts = (read[block.start - first : block.end - first] for block in blocks)
        return b"".join(self._decompress(part) for part in parts)


def read_long(reader: BinaryIO) -> int:
    """Read one zigzag variable-length integer."""
    value = shift = 0
    while True:
        byte = _exactly(reader, 1)[0]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1)
        shift += 7


def write_long(value: int) -> bytes:
    """Encode an integer for `read_long`."""
    rest = (value << 1) ^ (value >> 63)
    encoded = bytearray()
    while rest >= 0x80:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


def write_bytes(value: bytes) -> bytes:
    """Encode bytes or text with their length."""
    return write_long(len(value)) + value


def write_header(entries: Mapping[str, bytes], sync: bytes) -> bytes:
    """Return the beginning of a file.

    Args:
        entries: schema and codec.
        sync: the marker after the header and each block.
    """
    pairs = b"".join(write_bytes(name.encode()) + write_bytes(entries[name]) for name in entries)
    return b"".join((_MAGIC, write_long(len(entries)), pairs, write_long(0), sync))


def write_block(rows: int, encoded: Buffer, sync: bytes) -> bytes:
    """Return one block; its rows are copied once."""
    return b"".join((write_long(rows), write_long(len(encoded)), encoded, sync))


def write_container(schema: Any, rows: int, encoded: Buffer) -> bytes:
    """Return an uncompressed file of one block; the rows are copied once."""
    sync = bytes(_SYNC_BYTES)
    entries = {"avro.schema": json.dumps(schema).encode(), "avro.codec": b"null"}
    counts = write_long(rows) + write_long(len(encoded))
    return b"".join((write_header(entries, sync), counts, encoded, sync))


def _metadata(reader: BinaryIO) -> dict[str, bytes]:
    metadata: dict[str, bytes] = {}
    while count := read_long(reader):
        if count < 0:
            read_long(reader)
        for _ in range(abs(count)):
            name = _exactly(reader, read_long(reader))
            metadata[name.decode(errors="replace")] = _exactly(reader, read_long(reader))
    return metadata


def _codec(metadata: dict[str, bytes]) -> Decompress:
    name = metadata.get("avro.codec", b"null").decode(errors="replace")
    if name not in CODECS:
        problem = f"an Avro file compressed with {name}"
        raise pa.ArrowNotImplementedError(problem)
    return CODECS[name]


def _schema(metadata: dict[str, bytes]) -> Any:
    try:
        return json.loads(metadata["avro.schema"])
    except (KeyError, ValueError) as broken:
        problem = "no schema in the Avro header"
        raise pa.ArrowInvalid(problem) from broken


def _blocks(reader: io.BufferedReader, sync: bytes, size: int) -> tuple[Block, ...]:
    """Walk from block to block, and check that each ends with the file's sync marker."""
    blocks: list[Block] = []
    offset = reader.tell()
    while offset < size:
        rows, length = read_long(reader), read_long(reader)
        start = reader.tell()
        end = start + length
        if rows < 0 or length < 0 or end + _SYNC_BYTES > size:
            problem = f"no Avro block at byte {offset}"
            raise pa.ArrowInvalid(problem)
        reader.seek(end)
        if _exactly(reader, _SYNC_BYTES) != sync:
            problem = f"no sync marker after the Avro block at byte {offset}"
            raise pa.ArrowInvalid(problem)
        blocks.append(Block(rows, offset, start, end))
        offset = reader.tell()
    return tuple(blocks)


def _exactly(reader: BinaryIO, length: int) -> bytes:
    found = reader.read(length) if length >= 0 else b""
    if len(found) != length:
        problem = "the Avro file ends too early"
        raise pa.ArrowInvalid(problem)
    return found
