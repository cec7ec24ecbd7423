"""What is spread over buckets is gathered again: every row once, in order, equal keys together."""

from __future__ import annotations

import io
from collections import defaultdict
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.read import exchange
from tidegate.read.exchange import BUCKET_BITS, KeyPlacement, SpreadWriter, gather

NAME = "exchange/one/w1.arrow"
SCHEMA = pa.schema([("key", pa.string()), ("_row_id", pa.int64()), ("number", pa.int64())])


def batches(keys: list[str | None], sizes: list[int]) -> list[pa.RecordBatch]:
    """Number rows and cut them into batches of some sizes, in turn."""
    table = pa.table(
        [keys, [n % 5 if n % 3 else None for n in range(len(keys))], range(len(keys))],
        schema=SCHEMA,
    )
    made, start = [], 0
    while start < table.num_rows:
        size = sizes[len(made) % len(sizes)]
        made += table.slice(start, size).to_batches()
        start += size
    return made


def written(
    rows: list[pa.RecordBatch], placement: KeyPlacement, schema: pa.Schema = SCHEMA
) -> bytes:
    file = io.BytesIO()
    writer = SpreadWriter(file, schema, placement.buckets, NAME)
    for batch in rows:
        writer.append(batch, placement.of(batch))
    writer.end()
    writer.close()
    assert writer.rows == sum(batch.num_rows for batch in rows)
    return file.getvalue()


def bucket(content: bytes, number: int, buckets: int) -> list[dict[str, object]]:
    with pa.BufferReader(content) as file:
        return [row for batch in gather(file, number, buckets, NAME) for row in batch.to_pylist()]


@given(
    keys=st.lists(st.sampled_from([None, "", "a", "b", "c", "d"]), max_size=30),
    sizes=st.lists(st.integers(1, 7), min_size=1, max_size=3),
    buckets=st.integers(1, 6),
    round_bytes=st.sampled_from([1, 200, 1 << 20]),
)
def test_gather_of_all_buckets_gives_every_row_once_and_in_order(
    keys: list[str | None], sizes: list[int], buckets: int, round_bytes: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exchange, "_ROUND_BYTES", round_bytes)
        content = written(batches(keys, sizes), KeyPlacement(("key",), buckets))

    found = [bucket(content, number, buckets) for number in range(buckets)]

    homes = defaultdict(set)
    for number, rows in enumerate(found):
        assert [row["number"] for row in rows] == sorted(row["number"] for row in rows)
        for row in rows:
            homes[row["key"]].add(number)
    assert sorted(row["number"] for rows in found for row in rows) == list(range(len(keys)))
    assert all(len(numbers) == 1 for numbers in homes.values())


@given(
    places=st.lists(
        st.tuples(
            st.sampled_from([0, 1, 7, 65_535, 65_536]), st.sampled_from([0, 3, 65_535, 70_000])
        )
    )
)
def test_rows_of_a_round_are_ordered_by_place_and_then_as_they_came(
    places: list[tuple[int, int]],
) -> None:
    batch = pa.record_batch([["a"] * len(places), [None] * len(places), range(len(places))], SCHEMA)
    file = io.BytesIO()
    writer = SpreadWriter(file, SCHEMA, 65_537, NAME)
    coded = np.array([bucket << BUCKET_BITS | low for bucket, low in places], dtype=np.uint64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exchange, "pairwise", lambda bounds: [(bounds[0], bounds[-1])])
        writer.append(batch, coded)
        writer.end()
    writer.close()

    found = [row["number"] for row in bucket(file.getvalue(), 0, 1)]
    assert found == sorted(range(len(places)), key=lambda number: places[number])


def test_rows_of_one_place_keep_their_order_in_a_long_round() -> None:
    rows = batches(["a"] * 5_000, [700])

    found = bucket(written(rows, KeyPlacement(("key",), 1)), 0, 1)

    assert [row["number"] for row in found] == list(range(5_000))


def test_gather_of_a_file_without_its_end_is_refused() -> None:
    file = io.BytesIO()
    writer = SpreadWriter(file, SCHEMA, 1, NAME)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exchange, "_ROUND_BYTES", 1)
        for batch in batches(["a"] * 3, [1]):
            writer.append(batch, np.zeros(1, dtype=np.uint64))
    writer.close()

    with pytest.raises(pa.ArrowInvalid, match="other rows"):
        bucket(file.getvalue(), 0, 1)


def test_placement_by_row_id_brings_equal_ids_together_whatever_their_keys() -> None:
    rows = batches([str(number) for number in range(40)], [40])

    content = written(rows, KeyPlacement(("key",), 8, by_row_id=True))

    homes = defaultdict(set)
    for number in range(8):
        for row in bucket(content, number, 8):
            homes[row["_row_id"]].add(number)
    assert all(len(homes[row_id]) == 1 for row_id in range(5))
    # Rows without one are placed by their keys, and so do not all meet.
    assert len(homes[None]) > 1


def test_spread_of_nothing_is_a_file_of_empty_buckets() -> None:
    content = written([], KeyPlacement(("key",), 3))

    assert [bucket(content, number, 3) for number in range(3)] == [[], [], []]


def test_gather_of_a_file_with_any_bit_turned_is_refused_or_the_same() -> None:
    content = written(batches(["a", None, "bb", "c"] * 5, [7]), KeyPlacement(("key",), 3))
    whole = [bucket(content, number, 3) for number in range(3)]
    refused = 0
    for position in range(len(content)):
        turned = bytearray(content)
        turned[position] ^= 1 << position % 8
        try:
            found = [bucket(bytes(turned), number, 3) for number in range(3)]
        except (OSError, pa.ArrowException):
            refused += 1
        else:
            assert found == whole, f"bit {position % 8} of byte {position}"
    assert refused > len(content) // 2


@pytest.mark.parametrize("place", ["another name", "another bucket"])
def test_gather_of_what_stands_in_the_place_of_another_is_refused(place: str) -> None:
    content = written(batches(["a", "b"] * 5, [5]), KeyPlacement(("key",), 2))
    if place == "another bucket":
        with pa.ipc.open_file(content) as reader:
            found = [reader.get_batch_with_custom_metadata(n) for n in (1, 0, 2)]
        moved = io.BytesIO()
        with pa.ipc.new_file(moved, SCHEMA) as writer:
            for item in found:
                writer.write_batch(item.batch, custom_metadata=item.custom_metadata)
        content = moved.getvalue()

    name = NAME if place == "another bucket" else "exchange/other/w1.arrow"
    with pytest.raises(pa.ArrowInvalid, match="other rows"), pa.BufferReader(content) as file:
        list(gather(file, 0, 2, name))


KINDS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.bool_(), [True, False]),
    (pa.int8(), [1]),
    (pa.decimal128(9, 2), [Decimal("1.25")]),
    (pa.string(), ["", "xyz"]),
    (pa.large_binary(), [b"", b"xyz"]),
    (pa.list_(pa.int32()), [[], [1, None]]),
    (pa.list_(pa.int8(), 2), [[1, None]]),
    (pa.map_(pa.string(), pa.int32()), [[], [("k", None)]]),
    (pa.struct([("a", pa.int8()), ("b", pa.string())]), [{"a": None, "b": "q"}]),
    (pa.timestamp("ns", "UTC"), [5]),
]


@given(st.data())
def test_rows_of_any_type_are_gathered_as_they_were_spread(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 40))
    schema = pa.schema([("key", pa.int64()), *((str(kind), kind) for kind, _ in KINDS)])
    columns = [
        pa.array([data.draw(st.sampled_from([None, *values])) for _ in range(size)], kind)
        for kind, values in KINDS
    ]
    whole = pa.record_batch([pa.array(range(size), pa.int64()), *columns], schema=schema)
    part = whole.slice(data.draw(st.integers(0, size - 1)))

    content = written([part], KeyPlacement(("key",), 3), schema)

    with pa.BufferReader(content) as opened:
        found = [batch for number in range(3) for batch in gather(opened, number, 3, NAME)]
    assert pa.Table.from_batches(found, schema).sort_by("key").to_pylist() == part.to_pylist()


def test_gather_of_something_else_is_refused() -> None:
    with pytest.raises(pa.ArrowInvalid), pa.BufferReader(b"no such file at all") as file:
        list(gather(file, 0, 1, NAME))
