"""Rows of one partition share a bucket, whatever batch they come in."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.partition import DEFAULT_NAME, PartitionField, Transform
from tidegate.pipeline.load.partition_placement import PartitionPlacement
from tidegate.read.exchange import BUCKET_BITS
from tidegate.stage.partition_split import PartitionComputer

SCHEMA = pa.schema([("place", pa.string()), ("n", pa.int8())])
FIELDS = tuple(PartitionField(name, name, Transform.IDENTITY) for name in ("place", "n"))
KEYS = st.tuples(st.sampled_from([None, "", "a", "b", DEFAULT_NAME]), st.none() | st.integers(0, 3))


def batch(rows: list[tuple[str | None, int | None]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA
    )


@given(st.lists(st.lists(KEYS, min_size=1), min_size=1), st.integers(1, 7))
def test_rows_of_a_partition_share_a_place_in_every_task(
    batches: list[list[tuple[str | None, int | None]]], buckets: int
) -> None:
    places: dict[tuple[str | None, int | None], int] = {}
    found: dict[tuple[str | None, int | None], int] = {}
    task = PartitionPlacement(PartitionComputer(SCHEMA, FIELDS), buckets)
    for rows in batches:
        another = PartitionPlacement(PartitionComputer(SCHEMA, FIELDS), buckets)
        in_bucket = [place >> BUCKET_BITS for place in another.of(batch(rows)).tolist()]
        for (name, number), place, bucket in zip(
            rows, task.of(batch(rows)).tolist(), in_bucket, strict=True
        ):
            # Empty text is written as NULL is.
            partition = (name or None, number)
            assert place == places.setdefault(partition, place)
            assert bucket == found.setdefault(partition, bucket) == place >> BUCKET_BITS
            assert bucket < buckets
    assert len(set(places.values())) == len(places), "no two partitions are mixed"
