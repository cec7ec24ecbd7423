"""Rows of many small files are handed on: each row goes one way, those of a partition together."""

from __future__ import annotations

import functools
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.partition import Partition, PartitionField, Transform
from tidegate.read.exchange import BUCKET_BITS
from tidegate.stage.handing_on import HandedOn, Sharing
from tidegate.stage.partition_split import BatchSplit, PartitionComputer

if TYPE_CHECKING:
    from tidegate.read.row_hash import Hashes

SCHEMA = pa.schema([("place", pa.string()), ("n", pa.int64())])
COMPUTER = PartitionComputer(SCHEMA, (PartitionField("place", "place", Transform.IDENTITY),))


class Taken:
    """What was handed on, by bucket."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, str | None, int]] = []
        self.places: list[int] = []

    def append(self, batch: pa.RecordBatch, places: Hashes) -> None:
        assert places.dtype == np.uint64
        assert len(places) == batch.num_rows
        for row, place in zip(batch.to_pylist(), places.tolist(), strict=True):
            self.rows.append((place >> BUCKET_BITS, row["place"], row["n"]))
            self.places.append(place)


@functools.cache
def name(number: int) -> str | None:
    return f"p{number}" if number else None


def batch(numbers: list[int], start: int = 0) -> pa.RecordBatch:
    rows = range(start, start + len(numbers))
    return pa.record_batch([[name(number) for number in numbers], rows], schema=SCHEMA)


def kept_of(handed_on: HandedOn, rows: pa.RecordBatch) -> list[tuple[str | None, int]]:
    """The rows that are not handed on, as their partitions' slices give them."""
    split, left = handed_on.scattered(COMPUTER.split(rows), rows)
    if not left.num_rows:
        assert split.partitions == ()
        return []
    return [
        (dict(partition.values)["place"], row["n"])
        for partition, part in split.slices(left)
        for row in part.to_pylist()
        if row["place"] == dict(partition.values)["place"]
    ]


@given(
    groups=st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=200), max_size=4),
    buckets=st.integers(1, 9),
)
def test_each_row_is_kept_or_handed_on_once(groups: list[list[int]], buckets: int) -> None:
    taken = Taken()
    handed_on = HandedOn(taken.append, buckets, 32)
    wanted: Counter[tuple[str | None, int]] = Counter()
    kept: Counter[tuple[str | None, int]] = Counter()
    for numbers in groups:
        start = sum(wanted.values())
        wanted.update((name(number), start + at) for at, number in enumerate(numbers))
        kept.update(kept_of(handed_on, batch(numbers, start)))

    assert kept + Counter((place, n) for _, place, n in taken.rows) == wanted
    assert handed_on.rows == len(taken.rows)
    assert len({(bucket, place) for bucket, place, _ in taken.rows}) == len(
        {place for _, place, _ in taken.rows}
    ), "a partition has one bucket"
    assert all(bucket < buckets for bucket, _, _ in taken.rows)
    by_place = {(place, row[1]) for place, row in zip(taken.places, taken.rows, strict=True)}
    assert len({place for place, _ in by_place}) == len(by_place), "and stands together there"


@pytest.mark.parametrize(("partitions", "handed"), [(31, 0), (32, 320)])
def test_batch_of_few_partitions_keeps_its_rows(partitions: int, handed: int) -> None:
    taken = Taken()
    rows = batch([number % partitions for number in range(320)])

    kept = kept_of(HandedOn(taken.append, 4, 32), rows)

    assert (len(taken.rows), len(kept)) == (handed, 320 - handed)


def test_partition_with_a_large_share_keeps_its_rows() -> None:
    taken = Taken()
    rows = batch([99] * 51 + [98] * 49 + list(range(300)))

    kept = kept_of(HandedOn(taken.append, 4, 32), rows)

    # 52 of 400 are more than an eighth, 50 are not.
    assert Counter(place for place, _ in kept) == {"p99": 52}
    assert len(taken.rows) == 348


def test_rows_of_a_partition_share_their_bucket_in_every_task() -> None:
    one, other = Taken(), Taken()
    HandedOn(one.append, 7, 32).scattered(*split(range(40)))
    HandedOn(other.append, 7, 32).scattered(*split(range(39, -1, -1)))

    assert {row[:2] for row in one.rows} == {row[:2] for row in other.rows}
    assert len({row[0] for row in one.rows}) == 7, "buckets are shared out"


def test_partitions_of_one_bucket_stand_one_behind_the_other() -> None:
    taken = Taken()
    HandedOn(taken.append, 1, 32).scattered(*split([*range(40), *range(40)]))

    assert taken.places[:40] == taken.places[40:]
    assert sorted(taken.places[:40]) == [*range(40)]


def test_small_buffers_are_taken_once_many_partitions_were_seen() -> None:
    taken = Taken()
    handed_on = HandedOn(taken.append, 2, 32)
    partition = Partition((("place", "p1"),))

    handed_on.scattered(*split(range(31)))
    refused = handed_on.take(partition, [batch([1, 1])])
    handed_on.scattered(*split([31]))
    accepted = handed_on.take(partition, [batch([1, 1]), batch([1])])

    assert (refused, accepted) == (False, True)
    assert [row[1] for row in taken.rows] == ["p1"] * 3
    assert handed_on.rows == 3


def test_every_row_is_handed_on_where_rows_are_brought_together() -> None:
    taken = Taken()
    handed_on = HandedOn(taken.append, 4, 1, Sharing(shares=1, turn=0.5))

    kept = kept_of(handed_on, batch([7] * 90 + [8] * 10))

    assert (kept, len(taken.rows)) == ([], 100)
    assert len({row[:2] for row in taken.rows}) == 2


@given(
    numbers=st.lists(st.integers(0, 3), min_size=1, max_size=50),
    shares=st.integers(1, 9),
    givers=st.integers(1, 6),
    buckets=st.integers(1, 12),
)
def test_shares_of_a_partition_are_as_its_part_of_the_rows(
    numbers: list[int], shares: int, givers: int, buckets: int
) -> None:
    found: dict[str | None, list[int]] = {}
    for turn in range(givers):
        taken = Taken()
        sharing = Sharing(shares, turn / givers)
        HandedOn(taken.append, buckets, 1, sharing).scattered(*split(numbers))
        assert len(taken.rows) == len(numbers)
        places = {(place, bucket) for bucket, place, _ in taken.rows}
        assert len(places) == len(set(numbers)), "all of one sub-split go to one share"
        for place, bucket in places:
            found.setdefault(place, []).append(bucket)

    for place, chosen in found.items():
        rows = sum(name(number) == place for number in numbers)
        most = max(1, shares * rows // len(numbers))
        assert len(set(chosen)) <= most
        turns = [(bucket - chosen[0]) % buckets for bucket in chosen]
        if most <= buckets:
            assert turns == sorted(turns), "those that follow each other share a bucket"
            assert len(set(chosen)) == min(most, givers) or most > givers


def split(numbers: range | list[int]) -> tuple[BatchSplit, pa.RecordBatch]:
    rows = batch(list(numbers))
    return COMPUTER.split(rows), rows
