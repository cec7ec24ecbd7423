"""Every file format gives the same physical rows, whatever part of the file is asked for."""

from __future__ import annotations

import contextlib
import io
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.physical import FORMATS, PhysicalRows, open_rows

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("text", pa.string()),
        pa.field("amount", pa.decimal128(9, 2)),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("place", pa.struct([pa.field("id", pa.int32()), pa.field("text", pa.string())])),
        pa.field("words", pa.list_(pa.field("element", pa.string()))),
        pa.field("counts", pa.map_(pa.string(), pa.int32())),
    ]
)
_DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
_MOMENT = {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True}
_PLACE = {
    "type": "record",
    "name": "place",
    "fields": [
        {"name": "id", "type": ["null", "int"]},
        {"name": "text", "type": ["null", "string"]},
    ],
}
AVRO: dict[str, Any] = {
    "type": "record",
    "name": "table",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "text", "type": ["null", "string"]},
        {"name": "amount", "type": ["null", _DECIMAL]},
        {"name": "at", "type": ["null", _MOMENT]},
        {"name": "place", "type": ["null", _PLACE]},
        {"name": "words", "type": ["null", {"type": "array", "items": ["null", "string"]}]},
        {"name": "counts", "type": ["null", {"type": "map", "values": ["null", "int"]}]},
    ],
}
ROWS = 1_000
NAMES = SCHEMA.names


def _row(number: int) -> dict[str, Any]:
    if number % 7 == 3:
        return {"id": number} | dict.fromkeys(NAMES[1:])
    return {
        "id": number,
        "text": f"text {number}" * (number % 3),
        "amount": Decimal(number * 37 - 9_000) / 100,
        "at": 1_700_000_000_000_000 + number,
        "place": {"id": number % 5 or None, "text": None if number % 2 else "here"},
        "words": [None, "a", f"{number}"][: number % 4],
        "counts": {f"k{place}": place or None for place in range(number % 3)},
    }


def _table() -> pa.Table:
    rows = [_row(number) for number in range(ROWS)]
    for row in rows:
        row["counts"] = None if row["counts"] is None else list(row["counts"].items())
    return pa.Table.from_pylist(rows, SCHEMA)


def _parquet() -> bytes:
    file = io.BytesIO()
    pq.write_table(TABLE, file, row_group_size=130, store_schema=False)
    return file.getvalue()


def _orc() -> bytes:
    file = io.BytesIO()
    orc.write_table(TABLE, file, stripe_size=1, batch_size=130, row_index_stride=130)
    return file.getvalue()


def _avro() -> bytes:
    file = io.BytesIO()
    rows = [_row(number) for number in range(ROWS)]
    fastavro.writer(file, AVRO, rows, codec="deflate", sync_interval=4_000)
    return file.getvalue()


TABLE = _table()
FILES = {"parquet": _parquet(), "orc": _orc(), "avro": _avro()}
formats = pytest.mark.parametrize("file_format", sorted(FILES))


def _open(file_format: str) -> PhysicalRows:
    return open_rows(pa.BufferReader(FILES[file_format]), file_format)


def test_every_format_is_tried() -> None:
    assert set(FORMATS) == set(FILES)


@formats
def test_row_groups_of_a_file_add_up_to_its_rows(file_format: str) -> None:
    with _open(file_format) as file:
        groups = file.row_groups

        assert file.rows == ROWS
        assert len(groups) > 5
        assert sum(group.rows for group in groups) == ROWS
        offsets = [group.offset for group in groups]
        assert offsets == sorted(set(offsets), key=lambda offset: offset or 0)
        assert sum(group.size_bytes for group in groups) < len(FILES[file_format])


@formats
def test_schema_of_a_file_is_that_of_its_batches(file_format: str) -> None:
    with _open(file_format) as file:
        _, batch = next(file.batches(NAMES, 0, 1))

        assert batch.schema.equals(file.schema, check_metadata=True)
        assert [field.name for field in file.schema] == NAMES


@formats
@given(data=st.data())
def test_any_range_of_any_columns_equals_a_slice_of_the_whole(
    file_format: str, data: st.DataObject
) -> None:
    columns = data.draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1), "columns")
    start = data.draw(st.integers(0, ROWS), "start")
    end = data.draw(st.integers(start, ROWS), "end")
    batch_rows = data.draw(st.sampled_from([1, 7, 130, 131, 100_000]), "batch_rows")
    expected = TABLE.select(columns).slice(start, end - start)

    with _open(file_format) as file:
        read = list(file.batches(columns, start, end, batch_rows))

    position = start
    for first, batch in read:
        batch.validate(full=True)
        assert first == position
        assert 0 < batch.num_rows <= batch_rows
        position += batch.num_rows
    assert position == end
    found = [batch.select(columns) for _, batch in read]
    assert [row for batch in found for row in batch.to_pylist()] == expected.to_pylist()


@formats
def test_range_without_columns_only_counts_rows(file_format: str) -> None:
    with _open(file_format) as file:
        batches = list(file.batches([], 100, 900, 300))

    assert sum(batch.num_rows for _, batch in batches) == 800
    assert {batch.num_columns for _, batch in batches} == {0}
    assert batches[0][0] == 100


@formats
def test_empty_range_gives_nothing(file_format: str) -> None:
    with _open(file_format) as file:
        assert list(file.batches(NAMES, 17, 17)) == []


@formats
@pytest.mark.parametrize("kept", [0, 1, 3, 4, 20, 0.2, 0.5, 0.9, -17, -1])
def test_file_that_was_cut_is_refused(file_format: str, kept: float) -> None:
    whole = FILES[file_format]
    length = int(kept * len(whole)) if 0 < kept < 1 else int(kept)
    file = pa.BufferReader(whole[:length])

    with pytest.raises((OSError, pa.ArrowException)):
        open_rows(file, file_format)

    assert file.closed


@formats
def test_file_of_another_format_is_refused(file_format: str) -> None:
    other = next(name for name in FILES if name != file_format)

    with pytest.raises((OSError, pa.ArrowException)):
        open_rows(pa.BufferReader(FILES[other]), file_format)


@formats
def test_file_of_zeros_is_refused(file_format: str) -> None:
    with pytest.raises((OSError, pa.ArrowException)):
        open_rows(pa.BufferReader(bytes(2_000)), file_format)


@given(at=st.floats(0, 0.999), run=st.integers(1, 40), byte=st.sampled_from([0, 0x7F, 0xFF]))
def test_avro_file_with_overwritten_bytes_is_refused_or_read(
    at: float, run: int, byte: int
) -> None:
    damaged = bytearray(FILES["avro"])
    first = int(at * len(damaged))
    damaged[first : first + run] = bytes([byte]) * len(damaged[first : first + run])

    with (
        contextlib.suppress(OSError, pa.ArrowException),
        open_rows(pa.BufferReader(bytes(damaged)), "avro") as file,
    ):
        for _, batch in file.batches(file.schema.names, 0, file.rows):
            batch.validate(full=True)


@formats
def test_closed_file_is_closed(file_format: str) -> None:
    source = pa.BufferReader(FILES[file_format])

    with open_rows(source, file_format):
        pass

    assert source.closed
