"""A part file says what was written, and its columns get a dictionary where that pays."""

from __future__ import annotations

import hashlib
import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.sort_key import SortKey
from tidegate.physical.parts.parquet import dictionary_columns, sorting_columns
from tidegate.stage.part_file import HashedFile, PartFileWriter


def test_dictionary_columns_repeated_values_get_one_and_unique_ones_none() -> None:
    size = 5_000
    order = np.arange(size)
    rows = pa.RecordBatch.from_pydict(
        {
            "unique": pa.array([f"order-{number}" for number in order]),
            "region": pa.array(["eu", "us"] * (size // 2)),
            "id": pa.array(order),
            "quantity": pa.array(order % 7),
            "sorted": pa.array(order // 1_000),
            "tags": pa.array([["a"]] * size),
            "label": pa.array(["x"] * size).dictionary_encode(),
        }
    )

    assert dictionary_columns(rows) == ["region", "quantity", "sorted", "label"]


def test_dictionary_columns_many_values_of_many_more_rows_get_one_while_it_fits_a_page() -> None:
    size, random = 1 << 18, np.random.default_rng(7)
    prices, customers = random.integers(15_000, size=size), random.integers(60_000, size=size)
    rows = pa.RecordBatch.from_pydict(
        {
            "price": pa.array(prices / 100),
            "customer": pa.array(customers),
            "long": pa.array([f"{price:0100}" for price in prices]),
        }
    )

    assert dictionary_columns(rows) == ["price"]
    assert dictionary_columns(rows.slice(0, 50_000)) == []


@pytest.mark.parametrize(
    "kind",
    [
        pa.decimal256(60, 2),
        pa.float16(),
        pa.time64("us"),
        pa.binary(3),
        pa.null(),
        pa.duration("us"),
    ],
    ids=str,
)
def test_dictionary_columns_rare_types_do_not_fail(kind: pa.DataType) -> None:
    dictionary_columns(pa.RecordBatch.from_arrays([pa.nulls(10, kind)], ["x"]))


class Sink(io.BytesIO):
    """A file that knows in which pieces it was written, and keeps its content when closed."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[int] = []
        self.content = b""

    def write(self, content: Any) -> int:
        self.pieces.append(len(content))
        return super().write(content)

    def close(self) -> None:
        self.content = self.content or self.getvalue()
        super().close()


@given(st.lists(st.integers(0, 3 << 19), max_size=6))
def test_hashed_file_hands_on_all_bytes_in_large_pieces_and_knows_them(sizes: list[int]) -> None:
    written = [bytes([number]) * size for number, size in enumerate(sizes)]
    sink = Sink()
    file = HashedFile(sink)

    for content in written:
        assert file.write(content) == len(content)
        assert file.tell() == file.length
    file.close()
    file.close()

    assert sink.content == b"".join(written)
    assert file.length == sum(sizes)
    assert file.sha256 == hashlib.sha256(sink.content).hexdigest()
    assert all(piece >= 1 << 20 for piece in sink.pieces[:-1])


def test_hashed_file_that_was_abandoned_writes_nothing_more() -> None:
    sink = Sink()
    file = HashedFile(sink)
    file.write(b"waiting")

    file.abandon()

    assert file.write(b"more") == 4
    file.close()
    assert sink.content == b""
    assert sink.closed


def test_hashed_file_closes_its_file_also_where_the_disk_is_full() -> None:
    class Full(Sink):
        def write(self, content: Any) -> int:
            raise OSError

    sink = Full()
    file = HashedFile(sink)
    file.write(b"x")

    with pytest.raises(OSError):  # noqa: PT011 (the storage's own error passes)
        file.close()

    assert sink.closed


def _part(groups: list[list[int]]) -> tuple[Sink, PartFileWriter]:
    batches = [pa.RecordBatch.from_pydict({"id": pa.array(ids, pa.int64())}) for ids in groups]
    sink = Sink()
    writer = PartFileWriter(sink, batches[0])
    for batch in batches:
        writer.write(batch)
    return sink, writer


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4), min_size=1, max_size=4))
def test_part_file_has_each_batch_as_a_row_group_and_the_same_bytes_again(
    groups: list[list[int]],
) -> None:
    """PC-F11."""
    (sink, writer), (again, other) = _part(groups), _part(groups)

    writer.close()
    other.close()

    file = pq.ParquetFile(io.BytesIO(sink.content))
    found = [
        file.read_row_group(number).column("id").to_pylist()
        for number in range(file.num_row_groups)
    ]
    assert found == groups
    assert writer.rows == sum(map(len, groups))
    assert (writer.target.length, writer.target.sha256) == (
        len(sink.content),
        hashlib.sha256(sink.content).hexdigest(),
    )
    assert again.content == sink.content


def test_part_file_that_is_abandoned_has_no_footer() -> None:
    sink, writer = _part([[1, 2]])

    writer.abandon()

    assert not sink.content.endswith(b"PAR1")


NESTED = pa.schema(
    [
        ("place", pa.struct([("x", pa.float64()), ("y", pa.float64())])),
        ("tags", pa.list_(pa.string())),
        ("amount", pa.float64()),
        ("a.b", pa.string()),
    ]
)


def test_sorting_columns_count_the_parts_of_columns_before_them() -> None:
    found = sorting_columns(NESTED, [SortKey("a.b", descending=True), SortKey("amount")])

    assert found is not None
    assert [(it.column_index, it.descending, it.nulls_first) for it in found] == [
        (4, True, False),
        (3, False, False),
    ]


def test_sorting_columns_end_before_floats_with_the_largest_first() -> None:
    keys = [SortKey("a.b"), SortKey("amount", descending=True)]

    assert [it.column_index for it in sorting_columns(NESTED, keys) or ()] == [4]
    assert sorting_columns(NESTED, keys[1:]) is None
    assert sorting_columns(NESTED, []) is None


class Sent(io.BytesIO):
    """A file that is sent, and is there once somebody completes it."""

    upload = None
    is_given_up = False

    def give_up(self) -> None:
        self.is_given_up = True


def test_hashed_file_that_is_abandoned_while_it_is_sent_is_given_up() -> None:
    sent = Sent()
    file = HashedFile(sent)
    file.write(b"rows")

    file.abandon()
    file.write(b"of its writer")
    file.close()

    assert sent.is_given_up
    assert not sent.closed
    assert sent.getvalue() == b""
    assert file.length == 4


def test_hashed_file_that_was_closed_is_not_given_up() -> None:
    sent = Sent()
    file = HashedFile(sent)
    file.close()

    file.abandon()

    assert not sent.is_given_up
