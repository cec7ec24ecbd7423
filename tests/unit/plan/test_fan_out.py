"""Rows meet by partition exactly where their files would be many and tiny."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tidegate.model.exchange import Exchange
from tidegate.model.file_slice import FileSlice
from tidegate.model.partition import Transform
from tidegate.model.plan import Piece, Split, SubSplit
from tidegate.model.time_bounds import TimeBounds
from tidegate.plan.fan_out import FanOut, FanOutLimits, exchanged_by_partition

DAY = timedelta(days=1)
DAYS = FanOut(Transform.DAY, "UTC")
LIMITS = FanOutLimits(partitions=64, weight=1 << 24)
FIRST = datetime(2026, 1, 1, tzinfo=UTC)


def bounds(days: int, start: int = 0) -> TimeBounds:
    """Event times of as many days, from noon to noon."""
    begin = FIRST + DAY * start + DAY / 2
    return TimeBounds(begin, begin + DAY * (days - 1))


def split(number: int, times: TimeBounds | None, size_bytes: int = 1 << 20) -> Split:
    piece = Piece(FileSlice(f"f{number}.parquet"), 1_000, size_bytes, event_times=times)
    return Split((SubSplit((piece,)),), size_bytes)


def exchanges(splits: tuple[Split, ...]) -> list[Exchange]:
    return [part.exchange for item in splits for part in item.sub_splits if part.exchange]


@pytest.mark.parametrize(
    ("transform", "zone", "first", "last", "count"),
    [
        (Transform.DAY, "UTC", "2026-03-01T00:00", "2026-03-01T23:59", 1),
        (Transform.DAY, "UTC", "2026-02-28T23:59", "2026-03-01T00:00", 2),
        (Transform.DAY, "Asia/Kathmandu", "2026-03-01T18:14", "2026-03-01T18:15", 2),
        (Transform.HOUR, "UTC", "2026-03-01T00:00", "2026-03-02T00:00", 25),
        (Transform.MONTH, "UTC", "2025-12-31T00:00", "2026-01-01T00:00", 2),
        (Transform.MONTH, "UTC", "2019-01-01T00:00", "2025-12-31T00:00", 84),
    ],
)
def test_partitions_between_two_times(
    transform: Transform, zone: str, first: str, last: str, count: int
) -> None:
    times = TimeBounds(
        datetime.fromisoformat(f"{first}+00:00"), datetime.fromisoformat(f"{last}+00:00")
    )

    assert FanOut(transform, zone).of(times) == count


def test_rows_without_event_times_fall_into_one_partition() -> None:
    assert DAYS.of(TimeBounds()) == 1
    assert DAYS.of(None) is None


def test_first_and_last_moment_of_the_calendar_are_counted() -> None:
    ends = TimeBounds(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))

    for zone in ("America/New_York", "Asia/Tokyo"):
        assert FanOut(Transform.MONTH, zone).of(ends) in range(9_998 * 12, 9_999 * 12 + 1)


def test_sub_splits_that_each_touch_many_partitions_spread_their_rows() -> None:
    before = tuple(split(number, bounds(84)) for number in range(10))

    after = exchanged_by_partition(before, DAYS, LIMITS)

    spread, gathered = after[:10], after[10:]
    assert [item.sub_splits[0].pieces for item in spread] == [
        item.sub_splits[0].pieces for item in before
    ]
    assert {found.partitions for found in exchanges(after)} == {84}
    assert {found.stage for found in exchanges(spread)} == {0}
    assert [found.bucket for found in exchanges(gathered)] == list(range(len(gathered)))
    assert {found.buckets for found in exchanges(after)} == {len(gathered)}
    assert len(gathered) == 2, "as many as keep no more than 64 files open"
    assert sum(item.weight for item in gathered) <= sum(item.weight for item in before)


def test_heavy_rows_have_more_buckets_than_partitions_ask_for_but_no_more_than_there_are() -> None:
    heavy = tuple(replace(split(number, bounds(40)), weight=1 << 28) for number in range(4))

    assert len(exchanged_by_partition(heavy, DAYS, LIMITS)) == 4 + 40


@pytest.mark.parametrize(
    "splits",
    [
        pytest.param([split(n, bounds(1, n)) for n in range(100)], id="each its own day"),
        pytest.param([split(n, bounds(84), 1 << 30) for n in range(10)], id="large files"),
        pytest.param([split(n, bounds(3)) for n in range(10)], id="few files"),
        pytest.param([split(n, bounds(31)) for n in range(10)], id="few partitions"),
        pytest.param([split(n, None) for n in range(100)], id="no bounds"),
        pytest.param([split(n, bounds(9) if n else None) for n in range(100)], id="one without"),
        pytest.param([split(0, bounds(64))], id="one that keeps all files open"),
        pytest.param([], id="nothing"),
    ],
)
def test_other_splits_stay_as_they_are(splits: list[Split]) -> None:
    assert exchanged_by_partition(tuple(splits), DAYS, LIMITS) == tuple(splits)


def test_rebuild_of_few_partitions_spreads_nothing() -> None:
    before = tuple(split(number, bounds(84)) for number in range(10))

    assert exchanged_by_partition(before, replace(DAYS, most=3), LIMITS) == before
    assert len(exchanged_by_partition(before, replace(DAYS, most=84), LIMITS)) > len(before)


def test_one_sub_split_with_more_partitions_than_open_files_spreads() -> None:
    heavy = replace(split(0, bounds(400)), weight=1 << 26)
    after = exchanged_by_partition((heavy,), DAYS, LIMITS)

    assert len(exchanges(after)) == 1 + 7


def test_light_rows_of_many_partitions_wait_in_memory_for_their_files() -> None:
    after = exchanged_by_partition((split(0, bounds(400)), split(1, bounds(400))), DAYS, LIMITS)

    assert len(exchanges(after)) == 2 + 1


def test_span_of_thousands_of_years_makes_no_thousands_of_splits() -> None:
    far = TimeBounds(FIRST, datetime.max.replace(tzinfo=UTC))

    after = exchanged_by_partition(tuple(split(n, far) for n in range(4)), DAYS, LIMITS)

    assert {found.partitions for found in exchanges(after)} == {4_000}, "as many as there are rows"
    assert len(after) == 4 + 8


def test_rows_that_meet_by_what_they_change_stay_with_their_exchange() -> None:
    settled = Exchange("commit", 1, 3)
    own = Split(
        (SubSplit((Piece(FileSlice("c.parquet"), 1, 1, event_times=bounds(84)),), settled),), 1
    )
    last = Split((SubSplit((), replace(settled, stage=1, bucket=0)),), 1)
    plain = tuple(split(number, bounds(84)) for number in range(2))

    after = exchanged_by_partition((*plain, own, last), DAYS, LIMITS)

    assert own in after
    assert last in after
    assert len(after) > 4
