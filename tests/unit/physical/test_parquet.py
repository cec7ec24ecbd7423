"""What Arrow does not tell of damaged Parquet files is found by counting and naming."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidegate.physical import ParquetRows, open_rows

FIRST_PAGE_TYPE = 5
"""The place of the first page's type: behind the magic, in the first field of its header."""


def written(rows: pa.Table) -> bytearray:
    file = io.BytesIO()
    pq.write_table(rows, file, store_schema=False, use_dictionary=False, compression="none")
    return bytearray(file.getvalue())


def test_page_of_another_type_that_arrow_passes_over_is_missed() -> None:
    content = written(pa.table({"n": list(range(100))}))
    content[FIRST_PAGE_TYPE] = 0x10

    with (
        open_rows(pa.BufferReader(bytes(content)), "parquet") as rows,
        pytest.raises(pa.ArrowInvalid, match="expected 100 rows, found 0"),
    ):
        list(rows.batches(["n"], 0, 100))


def test_chunk_whose_column_is_no_text_is_refused_while_reading() -> None:
    content = written(pa.table({"name": [1]}))
    content[content.rindex(b"name")] = 0xFF

    with (
        open_rows(pa.BufferReader(bytes(content)), "parquet") as rows,
        pytest.raises(pa.ArrowInvalid, match="no text"),
    ):
        list(rows.batches(rows.schema.names, 0, 1))


@pytest.mark.parametrize("groups", [0, 1])
def test_row_group_without_pages_has_no_place(groups: int) -> None:
    # Arrow writes one such group for a table without rows, and no page of a column that has no
    # dictionary.
    file, schema = io.BytesIO(), pa.schema([("paid", pa.bool_()), ("n", pa.int64())])
    with pq.ParquetWriter(file, schema) as writer:
        for _ in range(groups):
            writer.write_table(schema.empty_table())

    with open_rows(pa.BufferReader(file.getvalue()), "parquet") as rows:
        assert rows.rows == 0
        assert [group.offset for group in rows.row_groups] == [None] * groups
        assert list(rows.batches(["n"], 0, 0)) == []


def test_bound_that_is_no_text_is_refused() -> None:
    content = written(pa.table({"name": ["some text"]}))
    content[content.rindex(b"some text")] = 0xFF

    with open_rows(pa.BufferReader(bytes(content)), "parquet") as rows:
        assert isinstance(rows, ParquetRows)
        with pytest.raises(pa.ArrowInvalid, match="a bound of column 'name' is no text"):
            rows.text_bounds("name")
