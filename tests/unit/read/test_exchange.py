"""What is spread over buckets is gathered again: every row once, in order, equal keys together."""

from __future__ import annotations

import io
from collections import defaultdict

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.read import exchange
from tidegate.read.exchange import KeyPlacement, gather, spread

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


def written(rows: list[pa.RecordBatch], placement: KeyPlacement) -> bytes:
    file = io.BytesIO()
    assert spread(rows, SCHEMA, placement, file) == sum(batch.num_rows for batch in rows)
    return file.getvalue()


def bucket(content: bytes, number: int, buckets: int) -> list[dict[str, object]]:
    with pa.BufferReader(content) as file:
        return [row for batch in gather(file, number, buckets) for row in batch.to_pylist()]


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


def test_gather_of_something_else_is_refused() -> None:
    with pytest.raises(pa.ArrowInvalid), pa.BufferReader(b"no such file at all") as file:
        list(gather(file, 0, 1))
