"""The header of a native log stands in its footer, in either of two forms."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from hudi_native import orc_log, parquet_log
from tidegate.errors import LogBlockUnreadable
from tidegate.source.hudi.logs.blocks import Block, BlockType
from tidegate.source.hudi.logs.native import native_block
from tidegate.source.hudi.slices.names import LogFile

INSTANT, OTHER = "20260201000000001", "20260101000000001"
ROWS = pa.table({"_hoodie_record_key": ["a"], "n": [1]})
PREFIX = "hudi.log.format."
HEADER = {"VERSION": "2", "SCHEMA": "{}"}
MAKERS = {"parquet": parquet_log, "orc": orc_log}


def spelled(entries: dict[str, str], form: str) -> dict[str, str]:
    if form == "one entry":
        return {f"{PREFIX}metadata": json.dumps(entries)}
    return {f"{PREFIX}{key}": text for key, text in entries.items()}


def found(texts: dict[str, str], kind: Any = "log", file_format: str = "parquet") -> Block:
    content = MAKERS.get(file_format, parquet_log)(ROWS, texts)
    name = f"t/g-0_1-2-3_{INSTANT}_4.{kind}.{file_format}"
    log = LogFile(name, len(content), "g-0", INSTANT, 4, "1-2-3", kind, file_format)
    return native_block(pa.BufferReader(content), log)


@pytest.mark.parametrize("file_format", MAKERS)
@pytest.mark.parametrize("form", ["one entry", "entries"])
def test_header_is_read_in_both_forms(form: str, file_format: str) -> None:
    entries = {
        **HEADER,
        "INSTANT_TIME": OTHER,
        "IS_PARTIAL": "true",
        "COMPACTED_BLOCK_TIMES": "1,2",
        "SOMETHING_NEW": "x",
    }

    block = found(spelled(entries, form), file_format=file_format)

    assert (block.instant, block.is_partial, block.compacted) == (OTHER, True, ("1", "2"))
    assert (block.type, block.file_format, block.offset) == (BlockType.PARQUET, file_format, 0)


@pytest.mark.parametrize("form", ["one entry", "entries"])
def test_log_whose_header_has_no_instant_is_of_the_instant_of_its_name(form: str) -> None:
    block = found(spelled(HEADER, form))

    assert (block.instant, block.is_partial, block.compacted) == (INSTANT, False, ())


@pytest.mark.parametrize(("kind", "type"), [("deletes", BlockType.DELETE), ("cdc", BlockType.CDC)])
def test_kind_of_rows_is_that_of_the_name(kind: str, type: BlockType) -> None:
    block = found({}, kind)

    assert (block.type, block.instant) == (type, INSTANT)


def test_block_is_the_whole_file() -> None:
    content = parquet_log(ROWS, {f"{PREFIX}SCHEMA": "{}"})

    assert found({f"{PREFIX}SCHEMA": "{}"}).length == len(content)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({}, "SCHEMA"),
        ({"VERSION": "2", "SCHEMA": "{}"}, "SCHEMA"),
        ({f"{PREFIX}metadata": "{"}, "no header"),
        ({f"{PREFIX}metadata": "[]"}, "found \\[\\]"),
        ({f"{PREFIX}SCHEMA": "{}", f"{PREFIX}VERSION": "3"}, "version 3, expected at most 2"),
        ({f"{PREFIX}SCHEMA": "{}", f"{PREFIX}VERSION": "two"}, "no header"),
    ],
    ids=["no texts", "other texts", "torn", "a list", "newer", "no number"],
)
def test_header_that_cannot_be_understood_is_refused(texts: dict[str, str], message: str) -> None:
    with pytest.raises(LogBlockUnreadable, match=message):
        found(texts)


@pytest.mark.parametrize("file_format", ["hfile", "lance"])
def test_log_of_another_format_is_refused_by_its_name(file_format: str) -> None:
    with pytest.raises(LogBlockUnreadable, match=f"{file_format}, expected orc or parquet"):
        found({}, file_format=file_format)


def test_file_without_a_footer_is_damaged() -> None:
    content = parquet_log(ROWS, {})[:-9]
    log = LogFile(f"g_1-2-3_{INSTANT}_4.log.parquet", 9, "g", INSTANT, 4, "1", "log", "parquet")

    with pytest.raises(pa.ArrowInvalid):
        native_block(pa.BufferReader(content), log)
