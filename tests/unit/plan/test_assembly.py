"""Splits that assemble are planned wherever rows may be scattered, and only there."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.exchange import Exchange
from tidegate.model.file_slice import CheckedState, FileSlice
from tidegate.model.partition import Transform
from tidegate.model.plan import Piece, Split, SubSplit
from tidegate.model.time_bounds import TimeBounds
from tidegate.plan.assembly import with_assembly
from tidegate.plan.fan_out import FanOut

if TYPE_CHECKING:
    from tidegate.model.assembly import Assembly

DAYS = FanOut(Transform.DAY, "UTC")
REGIONS = FanOut(None, "UTC", has_other_keys=True)
FIRST = datetime(2026, 1, 1, 12, tzinfo=UTC)
FAR = datetime(9999, 1, 1, tzinfo=UTC)
TARGET = 48 << 20


def days(count: int) -> TimeBounds:
    return TimeBounds(FIRST, FIRST + timedelta(days=count - 1))


def split(
    number: int, times: TimeBounds | None = None, weight: int = 1 << 20, rows: int = 1_000
) -> Split:
    piece = Piece(FileSlice(f"f{number}.parquet"), rows, weight, event_times=times)
    return Split((SubSplit((piece,)),), weight)


def assemblies(splits: tuple[Split, ...]) -> list[Assembly]:
    return [part.assembly for it in splits for part in it.sub_splits if part.assembly is not None]


@given(
    weights=st.lists(st.integers(0, 1 << 30), min_size=2, max_size=9),
    target=st.integers(0, 1 << 30),
)
def test_every_bucket_is_assembled_once_and_behind_all_others(
    weights: list[int], target: int
) -> None:
    before = tuple(split(number, weight=weight) for number, weight in enumerate(weights))

    after = with_assembly(before, REGIONS, target, 1)

    found = assemblies(after)
    assert after[: len(before)] == before
    assert [it.bucket for it in found] == list(range(len(after) - len(before)))
    assert {it.buckets for it in found} == {len(found)}
    assert {it.stage for it in after[len(before) :]} == {1}
    assert 1 <= len(found) <= 512
    assert len({it.id for it in after}) == len(after)
    heaviest = max(1, min(target, 64 << 20))
    assert all(it.weight <= heaviest for it in after[len(before) :]) or len(found) == 512


@pytest.mark.parametrize(
    ("splits", "fan_out"),
    [
        pytest.param([split(0), split(1)], None, id="no partitions"),
        pytest.param([split(0)], REGIONS, id="one light split"),
        pytest.param([split(n, days(31)) for n in range(9)], DAYS, id="few days each"),
        pytest.param([split(0), split(1)], replace(REGIONS, most=31), id="rebuild of few"),
        pytest.param([], REGIONS, id="nothing"),
    ],
)
def test_other_plans_assemble_nothing(splits: list[Split], fan_out: FanOut | None) -> None:
    assert with_assembly(splits, fan_out, TARGET, 1) == tuple(splits)


@pytest.mark.parametrize(
    ("splits", "fan_out"),
    [
        pytest.param([split(0, days(32)), split(1, days(1))], DAYS, id="many days in one"),
        pytest.param([split(0, days(1)), split(1)], DAYS, id="one without bounds"),
        pytest.param([split(0, days(1))] * 2, replace(DAYS, has_other_keys=True), id="two keys"),
        pytest.param([split(0, weight=65 << 20)], REGIONS, id="one heavy split"),
        pytest.param([split(0), split(1)], replace(REGIONS, most=32), id="rebuild of many"),
    ],
)
def test_plans_whose_rows_may_be_scattered_assemble(splits: list[Split], fan_out: FanOut) -> None:
    assert assemblies(with_assembly(splits, fan_out, TARGET, 1))


def test_what_opening_files_costs_makes_no_buckets() -> None:
    tiny = [Piece(FileSlice(f"f{number}.parquet"), 10, 1_000) for number in range(64)]
    splits = [Split((SubSplit((piece,)),), 4 << 20) for piece in tiny]

    assert [it.buckets for it in assemblies(with_assembly(splits, REGIONS, 48 << 20, 8))] == [1]
    wide = assemblies(with_assembly(splits, REGIONS, 48 << 20, 1 << 20))
    assert {it.buckets for it in wide} == {14}, "640 rows of one MiB"


def test_rows_that_meet_by_what_they_change_are_assembled_after_that() -> None:
    begin = Exchange("commit", 2, 1)
    piece = Piece(FileSlice("c.parquet"), 1, 1)
    exchanged = [
        Split((SubSplit((piece,), begin),), 1 << 20),
        *(Split((SubSplit((), replace(begin, stage=n, bucket=0)),), 1 << 20) for n in (1, 2)),
    ]

    after = with_assembly([*exchanged, split(1)], REGIONS, TARGET, 1)

    assert [it.stage for it in after] == [0, 1, 2, 0, 3]
    assert after[-1].weight == 2 << 20, "what spreads hands on nothing"


def test_files_read_for_a_check_alone_are_not_counted() -> None:
    checked = Piece(FileSlice("c.parquet", check=CheckedState(7, is_before=True)), 1, 1)
    assert SubSplit((checked,)).is_check

    alone = [split(0), Split((SubSplit((checked,)),), 1 << 30)]

    assert with_assembly(alone, REGIONS, TARGET, 1) == tuple(alone)


@pytest.mark.parametrize(
    ("files", "span", "weight", "many"),
    [
        pytest.param(100, 40, 1 << 20, 2, id="many small files of few days each"),
        pytest.param(100, 31, 1 << 20, 32, id="few days"),
        pytest.param(100, 60, 1 << 20, 32, id="hardly more files than days"),
        pytest.param(32, 32, 1 << 20, 32, id="few files"),
        pytest.param(100, 40, 32 << 20, 32, id="large files"),
    ],
)
def test_bounds_that_show_many_small_files_let_few_partitions_be_handed_on(
    files: int, span: int, weight: int, many: int
) -> None:
    def of_day(number: int) -> Split:
        begin = FIRST + timedelta(days=number % span)
        return split(number, TimeBounds(begin, begin), weight)

    singles = tuple(of_day(number) for number in range(files))
    unknown_beside = replace(DAYS, has_other_keys=True)

    found = assemblies(with_assembly(singles, unknown_beside, TARGET, 8))

    assert {it.many for it in found} == {many}


@pytest.mark.parametrize(
    ("files", "with_far_row", "rows", "many"),
    [
        pytest.param(100, 0, 1_000, 2, id="files of two days"),
        pytest.param(40, 0, 2, 2, id="as many rows as days"),
        pytest.param(40, 0, 1, 32, id="fewer rows than days"),
        pytest.param(8, 1, 40_000, 32, id="a distant day in one of few files"),
        pytest.param(100, 1, 1_000, 32, id="a distant day in one of many files"),
        pytest.param(100, 100, 1_000, 32, id="a distant day in every file"),
    ],
)
def test_sub_split_has_no_more_partitions_than_rows(
    files: int, with_far_row: int, rows: int, many: int
) -> None:
    def of_two_days(number: int) -> Split:
        begin = FIRST + timedelta(days=number % 34)
        end = FAR if number < with_far_row else begin + timedelta(days=1)
        return split(number, TimeBounds(begin, end), rows=rows)

    splits = tuple(of_two_days(number) for number in range(files))
    unknown_beside = replace(DAYS, has_other_keys=True)

    found = assemblies(with_assembly(splits, unknown_beside, TARGET, 8))

    assert {it.many for it in found} == {many}


def test_rows_that_are_all_brought_together_are_handed_on_from_one_partition_on() -> None:
    splits = [split(number, days(1), weight=64 << 20) for number in range(3)]

    found = assemblies(with_assembly(splits, DAYS, TARGET, 1, share_size=100 << 20))

    assert {(it.buckets, it.many, it.shares) for it in found} == {(4, 1, 1)}


def test_large_partition_is_shared_by_what_one_task_writes() -> None:
    splits = [split(number, days(1), weight=64 << 20) for number in range(8)]

    found = assemblies(with_assembly(splits, DAYS, TARGET, 1, share_size=128 << 20))

    assert {it.shares for it in found} == {4}


@pytest.mark.parametrize("splits", [[], [split(0)]], ids=["nothing", "one light split"])
def test_rows_that_are_together_already_are_not_handed_on(splits: list[Split]) -> None:
    assert with_assembly(splits, REGIONS, TARGET, 1, share_size=1 << 20) == tuple(splits)


def test_plans_without_shares_have_the_text_of_earlier_ones() -> None:
    (found, *_) = assemblies(with_assembly([split(0), split(1)], REGIONS, TARGET, 1))

    assert "shares" not in found.to_text()
