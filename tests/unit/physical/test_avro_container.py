"""Containers are walked block by block; their numbers and bytes come back as they were written."""

from __future__ import annotations

import io

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.physical.avro_container import (
    AvroContainer,
    read_long,
    write_bytes,
    write_container,
    write_long,
)

SCHEMA = {"type": "record", "name": "t", "fields": [{"name": "a", "type": "string"}]}


@given(number=st.integers(-(2**63), 2**63 - 1))
def test_any_number_is_read_as_it_was_written(number: int) -> None:
    assert read_long(io.BytesIO(write_long(number))) == number


@given(texts=st.lists(st.text(max_size=30), max_size=30), sync_interval=st.integers(1, 200))
def test_blocks_of_any_file_are_those_of_its_writer(texts: list[str], sync_interval: int) -> None:
    file = io.BytesIO()
    fastavro.writer(file, SCHEMA, [{"a": text} for text in texts], sync_interval=sync_interval)
    file.seek(0)
    expected = [(block.num_records, block.offset) for block in fastavro.block_reader(file)]

    container = AvroContainer(pa.BufferReader(file.getvalue()))

    assert [(block.rows, block.offset) for block in container.blocks] == expected
    encoded = b"".join(write_bytes(text.encode()) for text in texts)
    assert container.rows_of(container.blocks) == encoded


def test_metadata_in_several_parts_with_lengths_is_read() -> None:
    plain = write_container(SCHEMA, 1, write_bytes(b"x"))
    header = plain[len(b"Obj\x01") + 1 :]
    counted = b"Obj\x01" + write_long(-2) + write_long(77) + header

    container = AvroContainer(pa.BufferReader(counted))

    assert container.schema == SCHEMA
    assert [block.rows for block in container.blocks] == [1]


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda whole: whole[:-1] + b"?", "no sync marker after the Avro block at byte"),
        (lambda whole: whole + write_long(-5), "ends too early|no Avro block"),
        (lambda whole: whole + write_long(3) + write_long(10**6), "no Avro block at byte"),
        (lambda whole: whole + write_long(-3) + write_long(1) + bytes(20), "no Avro block at byte"),
        (lambda whole: whole + b"\x80", "ends too early"),
    ],
    ids=["marker", "half-a-block", "too-long", "negative", "half-a-number"],
)
def test_block_that_is_none_is_refused(damage: object, problem: str) -> None:
    whole = write_container(SCHEMA, 1, write_bytes(b"text of a row"))
    assert callable(damage)

    with pytest.raises(pa.ArrowInvalid, match=problem):
        AvroContainer(pa.BufferReader(damage(whole)))
