"""Data blocks are decoded, and what is damaged or not read is named with its place."""

from __future__ import annotations

import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_logs import DELETE, HFILE, INSTANT, PARQUET, block, rows_block
from hudi_native import orc_log, parquet_log
from tidegate.errors import LogBlockUnreadable
from tidegate.source.hudi.logs.blocks import Block, BlockType, read_blocks
from tidegate.source.hudi.logs.decoding import decode_deletes, decode_records

ROWS = [{"k": "a", "n": 1}, {"k": "b", "n": None}]


def found(content: bytes) -> tuple[Block, bytes]:
    (one,) = read_blocks(pa.BufferReader(content), "log", len(content))
    return one, content[one.offset : one.offset + one.length]


def parquet(rows: list[dict[str, object]]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return bytes(sink.getvalue())


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(rows_block("1", ROWS), id="avro"),
        pytest.param(block(PARQUET, {INSTANT: "1"}, parquet(ROWS)), id="parquet"),
    ],
)
def test_wanted_columns_are_decoded_if_the_block_has_them(written: bytes) -> None:
    decoded = decode_records(*found(written), {"n", "k", "other"})

    assert decoded.select(["k", "n"]).to_pylist() == ROWS
    assert set(decoded.schema.names) == {"k", "n"}


@pytest.mark.slow
def test_block_with_more_text_than_a_column_of_arrow_holds_is_refused_whole() -> None:
    """2.3 GB, which a few kilobytes of Parquet expand to, take more than one chunk."""
    rows = 2300
    repeated = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), ["x" * 1_000_000])
    sink = pa.BufferOutputStream()
    content = pa.table({"k": list(map(str, range(rows))), "v": repeated})
    pq.write_table(content, sink, store_schema=False, compression="zstd", row_group_size=500)
    written = block(PARQUET, {INSTANT: "1"}, bytes(sink.getvalue()))

    with pytest.raises(LogBlockUnreadable, match="more than 2 GiB of text"):
        decode_records(*found(written), {"k", "v"})
    assert decode_records(*found(written), {"k"}).num_rows == rows


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(block(HFILE, {INSTANT: "1"}, b"x"), id="hfile"),
        pytest.param(block(PARQUET, {INSTANT: "1"}, b"PAR1"), id="damaged parquet"),
        pytest.param(block(3, {INSTANT: "1"}, struct.pack(">II", 3, 1)), id="no schema"),
        pytest.param(block(3, {INSTANT: "1"}, b"x"), id="too short"),
    ],
)
def test_block_that_is_not_read_is_named(written: bytes) -> None:
    with pytest.raises(LogBlockUnreadable, match="log"):
        decode_records(*found(written), {"k"})


def test_delete_block_of_an_old_version_is_named() -> None:
    with pytest.raises(LogBlockUnreadable, match="version 2"):
        decode_deletes(*found(block(DELETE, {INSTANT: "1"}, struct.pack(">II", 2, 0))))


@given(st.data())
def test_flipped_bytes_of_content_give_rows_or_a_typed_error(data: st.DataObject) -> None:
    one, content = found(rows_block("1", [{"k": f"key {it}", "n": it} for it in range(9)]))
    place = data.draw(st.integers(0, len(content) - 1))
    damaged = content[:place] + bytes([data.draw(st.integers(0, 255))]) + content[place + 1 :]

    try:
        decoded = decode_records(one, damaged, {"k", "n"})
    except LogBlockUnreadable:
        return
    assert decoded.num_rows == struct.unpack_from(">II", damaged)[1]


MAKERS = {"parquet": parquet_log, "orc": orc_log}


def native(kind: BlockType, rows: pa.Table, file_format: str) -> tuple[Block, bytes]:
    content = MAKERS[file_format](rows, {})
    return Block("log", kind, {}, 0, len(content), file_format), content


@pytest.mark.parametrize("file_format", MAKERS)
def test_rows_of_a_native_log_are_those_of_the_file(file_format: str) -> None:
    rows = pa.Table.from_pylist(ROWS)

    decoded = decode_records(*native(BlockType.PARQUET, rows, file_format), {"n", "other"})

    assert decoded.to_pylist() == [{"n": 1}, {"n": None}]


@pytest.mark.parametrize("file_format", MAKERS)
def test_deletes_of_a_native_log_have_the_values_of_the_ordering_columns(file_format: str) -> None:
    rows = pa.table({"_hoodie_record_key": ["a", "b"], "ts": [4, None]})

    found = decode_deletes(*native(BlockType.DELETE, rows, file_format), ["ts"])

    assert found.keys.to_pylist() == ["a", "b"]
    assert [values.to_pylist() for values in found.ordering] == [[4, None]]


@pytest.mark.parametrize("kind", [BlockType.PARQUET, BlockType.DELETE])
@pytest.mark.parametrize("file_format", MAKERS)
def test_damaged_native_log_is_named(kind: BlockType, file_format: str) -> None:
    rows = pa.table({"_hoodie_record_key": ["a" * 99], "n": [1]})
    block, content = native(kind, rows, file_format)

    decode = decode_deletes if kind is BlockType.DELETE else decode_records

    with pytest.raises(LogBlockUnreadable, match="log"):
        decode(block, content[: len(content) // 2], ["n"])
