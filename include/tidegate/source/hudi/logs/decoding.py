"""Decode the records of blocks: Avro rows with their lengths, or a whole Parquet or ORC file."""

from __future__ import annotations

import functools
import struct
from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.errors import LogBlockUnreadable
from tidegate.physical.avro_decoder import AvroDecoder
from tidegate.physical.opening import open_rows
from tidegate.source.hudi.logs.blocks import BlockType, Header
from tidegate.source.hudi.logs.deletes import native_deletes, read_deletes
from tidegate.source.hudi.table.avro import avro_schema
from tidegate.source.hudi.table.columns import KEY

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from tidegate.source.hudi.logs.blocks import Block
    from tidegate.source.hudi.logs.deletes import Deletes

_LEAD = struct.Struct(">II")
_KEPT_DECODERS = 32


def decode_records(block: Block, content: bytes, columns: Collection[str]) -> pa.RecordBatch:
    """Decode a data block.

    Args:
        block: of type AVRO, PARQUET or CDC.
        content: its bytes.
        columns: what is wanted; those that the block does not have are left out.

    Raises:
        LogBlockUnreadable: it is damaged, or of a type that is not read.
    """
    try:
        if block.file_format is not None:
            return _file(block.file_format, content, columns)
        if block.type in {BlockType.AVRO, BlockType.CDC}:
            return _avro(block, content, columns)
        if block.type is BlockType.PARQUET:
            return _file("parquet", content, columns)
        problem = f"a block of type {block.type.name}, expected AVRO or PARQUET"
        raise pa.ArrowNotImplementedError(problem)
    except (pa.ArrowException, OSError, ValueError) as damaged:
        raise _unreadable(block, damaged) from damaged


def decode_deletes(block: Block, content: bytes, ordering: Sequence[str] = ()) -> Deletes:
    """Decode a delete block.

    Args:
        block: of type DELETE.
        content: its bytes.
        ordering: the columns that order records, which a native log names.

    Raises:
        LogBlockUnreadable: it is damaged, or of a version that is not read.
    """
    try:
        if block.file_format is not None:
            rows = _file(block.file_format, content, {KEY, *ordering})
            return native_deletes(rows, KEY, ordering)
        return read_deletes(content)
    except (pa.ArrowException, OSError) as damaged:
        raise _unreadable(block, damaged) from damaged


@functools.lru_cache(_KEPT_DECODERS)
def _decoder(schema: str) -> AvroDecoder:
    return AvroDecoder(avro_schema(schema), framed=True)


def _avro(block: Block, content: bytes, columns: Collection[str]) -> pa.RecordBatch:
    if len(content) < _LEAD.size:
        problem = f"expected a version and a number of records, found {len(content)} bytes"
        raise pa.ArrowInvalid(problem)
    _, count = _LEAD.unpack_from(content)
    decoder = _decoder(block.header.get(Header.SCHEMA, ""))
    names = [name for name in decoder.schema.names if name in columns]
    return decoder.decode(memoryview(content)[_LEAD.size :], count, names)


def _file(file_format: str, content: bytes, columns: Collection[str]) -> pa.RecordBatch:
    with open_rows(pa.BufferReader(content), file_format) as file:
        names = [name for name in file.schema.names if name in columns]
        batches = [batch for _, batch in file.batches(names, 0, file.rows)]
        schema = pa.schema([file.schema.field(name) for name in names])
        table = pa.Table.from_batches(batches, schema if not batches else None)
    combined = table.combine_chunks().to_batches()
    if len(combined) > 1:
        # Arrow cuts a column that its offsets of 32 bits do not reach into chunks.
        problem = "a column of the block has more than 2 GiB of text"
        raise pa.ArrowInvalid(problem)
    return combined[0] if combined else pa.RecordBatch.from_pylist([], schema=schema)


def _unreadable(block: Block, damaged: Exception) -> LogBlockUnreadable:
    return LogBlockUnreadable(path=block.path, offset=block.offset, problem=str(damaged).strip())
