"""Blocks of a log are found whole, and damage is found as such."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_logs import AVRO, INSTANT, MAGIC, block, rollback_block, rows_block
from tidegate.errors import LogBlockUnreadable, NoLogFile
from tidegate.source.hudi.logs import blocks as log_blocks
from tidegate.source.hudi.logs.blocks import Block, BlockType, read_blocks

ONE = rows_block("1", [{"k": "a"}])
TWO = rollback_block("2", "1")
CORRUPT = BlockType.CORRUPT


def blocks(content: bytes) -> list[Block]:
    return list(read_blocks(pa.BufferReader(content), "log", len(content)))


def kinds(content: bytes) -> list[tuple[BlockType, str]]:
    return [(it.type, it.instant) for it in blocks(content)]


def test_blocks_are_found_in_their_order_with_header_and_content() -> None:
    one, two = blocks(ONE + TWO)

    assert (one.type, one.instant, one.is_rollback) == (BlockType.AVRO, "1", False)
    assert (two.is_rollback, two.instant, two.target) == (True, "2", "1")
    assert ONE[one.offset : one.offset + one.length].startswith(struct.pack(">II", 3, 1))


def test_empty_file_has_no_blocks() -> None:
    assert blocks(b"") == []


def test_unknown_keys_of_headers_are_kept() -> None:
    (found,) = blocks(block(AVRO, {INSTANT: "1", 99: "x"}))

    assert found.header == {0: "1", 99: "x"}


def test_header_longer_than_what_is_read_first_is_read_on() -> None:
    (found,) = blocks(block(AVRO, {INSTANT: "1", 99: "x" * 200_000}, b"content"))

    assert (len(found.header[99]), found.length) == (200_000, 7)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        pytest.param(ONE + TWO[:-9], [(BlockType.AVRO, "1"), (CORRUPT, "")], id="torn at the end"),
        pytest.param(
            ONE[:-9] + TWO, [(CORRUPT, ""), (BlockType.COMMAND, "2")], id="torn, then a good one"
        ),
        pytest.param(
            ONE + b"garbage" + TWO,
            [(CORRUPT, ""), (BlockType.COMMAND, "2")],
            id="garbage behind a block",
        ),
        pytest.param(
            ONE[:-8] + struct.pack(">Q", 1) + TWO,
            [(CORRUPT, ""), (BlockType.COMMAND, "2")],
            id="wrong length behind",
        ),
    ],
)
def test_damaged_span_is_one_corrupt_block_up_to_the_next_good_one(
    content: bytes, found: list[tuple[BlockType, str]]
) -> None:
    assert kinds(content) == found


@pytest.mark.parametrize("edge", range(-len(MAGIC) - 1, 2))
def test_good_block_is_found_wherever_it_begins_behind_a_torn_one(edge: int) -> None:
    """Files are searched piece by piece: one may end within the bytes that a block begins with."""
    torn = ONE[:-9]
    filler = bytes(log_blocks._CHUNK + len(MAGIC) + edge - len(torn))

    assert kinds(torn + filler + TWO) == [(CORRUPT, ""), (BlockType.COMMAND, "2")]


@pytest.mark.parametrize("size", range(1, len(MAGIC)))
def test_block_before_a_few_bytes_of_a_torn_one_is_whole(size: int) -> None:
    assert kinds(ONE + TWO[:size]) == [(BlockType.AVRO, "1"), (CORRUPT, "")]


@pytest.mark.parametrize("size", range(1, len(ONE)))
def test_file_of_one_torn_block_is_one_corrupt_span(size: int) -> None:
    assert kinds(ONE[:size]) == [(CORRUPT, "")]


def test_content_with_the_magic_in_it_is_no_block_of_its_own() -> None:
    (found,) = blocks(block(AVRO, {INSTANT: "1"}, MAGIC * 3))

    assert found.length == 3 * len(MAGIC)


def test_file_that_begins_otherwise_is_no_log() -> None:
    with pytest.raises(NoLogFile):
        blocks(b"PAR1" + ONE)


@pytest.mark.parametrize(
    "damaged",
    [
        pytest.param(block(9, {INSTANT: "1"}), id="unknown type"),
        pytest.param(block(2, {INSTANT: "1"}), id="type that is never stored"),
        pytest.param(block(AVRO, {INSTANT: "1"}, version=2), id="unknown format"),
    ],
)
def test_block_of_an_unknown_kind_is_refused(damaged: bytes) -> None:
    with pytest.raises(LogBlockUnreadable):
        blocks(damaged)


def test_header_longer_than_its_block_is_refused() -> None:
    place = ONE.index(struct.pack(">II", INSTANT, 1)) - 4
    damaged = ONE[:place] + struct.pack(">I", 2**31) + ONE[place + 4 :]

    with pytest.raises(LogBlockUnreadable):
        blocks(damaged)


@given(st.integers(0, len(ONE + TWO) - 1), st.integers(0, 255), st.booleans())
def test_any_flipped_or_cut_byte_gives_blocks_or_a_typed_error(
    place: int, value: int, cut: bool
) -> None:
    whole = ONE + TWO
    damaged = whole[:place] if cut else whole[:place] + bytes([value]) + whole[place + 1 :]

    try:
        found = blocks(damaged)
    except (NoLogFile, LogBlockUnreadable):
        return
    assert all(it.offset + it.length <= len(damaged) for it in found)
