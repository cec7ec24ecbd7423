"""What Arrow does not tell of damaged Parquet files is found by counting and naming."""

from __future__ import annotations

import io

import numpy as np
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


class Recording(io.BytesIO):
    """A file elsewhere, of which each read is a request."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.asked: list[range] = []

    def read(self, size: int | None = -1) -> bytes:
        start = self.tell()
        found = super().read(size)
        self.asked.append(range(start, start + len(found)))
        return found


@pytest.mark.parametrize(
    ("columns", "requests"), [(["a", "b", "c"], 4), (["b"], 4), (["a", "d"], 7), ([], 1)]
)
def test_file_elsewhere_is_asked_for_its_footer_and_for_what_is_next_to_each_other(
    columns: list[str], requests: int
) -> None:
    random = np.random.default_rng(7)
    table = pa.table({name: random.integers(0, 1 << 60, 60_000) for name in "abcd"})
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=20_000)
    metadata = pq.read_metadata(io.BytesIO(sink.getvalue()))
    chunks = [
        metadata.row_group(group).column("abcd".index(name)).total_compressed_size
        for group in range(3)
        for name in columns
    ]
    file = Recording(sink.getvalue())

    rows = ParquetRows(pa.PythonFile(file, mode="r"))
    footer = sum(map(len, file.asked))
    batches = [batch for _, batch in rows.batches(columns, 0, 60_000)]

    assert pa.Table.from_batches(batches).equals(table.select(columns))
    assert len([asked for asked in file.asked if asked]) == requests
    assert footer <= 64 << 10
    # Nothing is read that is not needed, but for the headers at which a chunk begins.
    assert sum(map(len, file.asked)) - footer <= sum(chunks) + (len(chunks) << 10)
