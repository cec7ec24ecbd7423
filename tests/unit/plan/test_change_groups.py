"""Commits whose rows may cancel stay together: whole in a sub-split, or joined by an exchange."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.config import SplitConfig
from tidegate.model.file_slice import Change, Delta, DeltaKind, Deltas, FileSlice
from tidegate.model.plan import Piece, Split
from tidegate.model.row_changes import can_cancel, change_ordinal
from tidegate.physical import RowGroup
from tidegate.plan import bucket_count, plan_change_splits

OLD, NEW = (Delta(name, DeltaKind.POSITIONS, "parquet", 10, 1, 1) for name in ("d1", "d2"))
ADDED: tuple[Deltas | None, Deltas | None] = (None, ())
REMOVED: tuple[Deltas | None, Deltas | None] = ((), None)
STATES: dict[str, tuple[Deltas | None, Deltas | None]] = {
    "added": ADDED,
    "removed": REMOVED,
    "deleted from": ((OLD,), (OLD, NEW)),
    "restored": ((OLD, NEW), (OLD,)),
    "delete replaced": ((OLD,), (NEW,)),
}


def piece(ordinal: int, state: str, number: int, rows: int = 10) -> Piece:
    before, after = STATES[state]
    change = Change(ordinal, 100 + ordinal, before, after)
    slice = FileSlice(f"f{ordinal}-{number}.parquet", offsets=(4,), change=change)
    return Piece(slice, rows, rows * 10)


def planned(
    pieces: list[Piece], exchanges: int = 1, max_rows: int = 100, target: int = 1000
) -> tuple[Split, ...]:
    config = SplitConfig(target_size=target, open_cost=1, max_rows=max_rows)
    return plan_change_splits(
        pieces, lambda it: [RowGroup(it.rows, it.size_bytes)], config, 1, 1, exchanges
    )


@pytest.mark.parametrize(
    ("states", "may"),
    [
        (["added", "added"], False),
        (["removed"], False),
        (["deleted from", "removed"], False),
        (["restored", "added"], False),
        (["added", "removed"], True),
        (["added", "deleted from"], True),
        (["restored", "removed"], True),
        (["delete replaced"], True),
    ],
)
def test_rows_of_a_commit_may_cancel_if_they_can_be_of_both_kinds(
    states: list[str], may: bool
) -> None:
    pieces = [piece(0, state, number) for number, state in enumerate(states)]

    assert can_cancel(pieces) is may


commits = st.lists(
    st.lists(
        st.tuples(st.sampled_from(sorted(STATES)), st.integers(1, 80)), min_size=1, max_size=5
    ),
    max_size=6,
).map(
    lambda made: [
        piece(ordinal, state, number, rows)
        for ordinal, files in enumerate(made)
        for number, (state, rows) in enumerate(files)
    ]
)


@given(pieces=commits, exchanges=st.integers(0, 2), max_rows=st.integers(1, 200))
def test_every_row_is_read_once_and_cancelling_commits_are_never_torn_apart(
    pieces: list[Piece], exchanges: int, max_rows: int
) -> None:
    splits = planned(pieces, exchanges, max_rows)

    read: dict[str, int] = defaultdict(int)
    homes: dict[int | None, set[str]] = defaultdict(set)
    groups: dict[int | None, set[str]] = defaultdict(set)
    for split in splits:
        for part in split.sub_splits:
            for it in part.pieces:
                read[it.path] += it.rows
                homes[change_ordinal(it)].add(part.id)
                groups[change_ordinal(it)].add(part.exchange.group if part.exchange else "")
    assert read == {it.path: it.rows for it in pieces}
    for ordinal in {change_ordinal(it) for it in pieces}:
        together = [it for it in pieces if change_ordinal(it) == ordinal]
        if exchanges and can_cancel(together):
            assert len(groups[ordinal]) == 1
            assert groups[ordinal] != {""} or len(homes[ordinal]) == 1
        else:
            assert groups[ordinal] == {""}


@given(pieces=commits, exchanges=st.integers(1, 2))
def test_each_bucket_of_an_exchange_is_gathered_once_per_stage(
    pieces: list[Piece], exchanges: int
) -> None:
    splits = planned(pieces, exchanges, max_rows=20, target=200)

    gathered: dict[tuple[str, int], list[int | None]] = defaultdict(list)
    buckets = {}
    for split in splits:
        for part in split.sub_splits:
            exchange = part.exchange
            if exchange is not None:
                buckets[exchange.group] = exchange.buckets
                if exchange.stage:
                    assert part.pieces == ()
                    assert split.stage == exchange.stage
                    gathered[exchange.group, exchange.stage].append(exchange.bucket)
    assert {stage for _, stage in gathered} <= set(range(1, exchanges + 1))
    assert len(gathered) == len(buckets) * exchanges
    for (group, _), numbers in gathered.items():
        assert sorted(number for number in numbers if number is not None) == list(
            range(buckets[group])
        )


def test_planning_the_same_changes_again_gives_the_same_ids() -> None:
    pieces = [piece(0, "added", 0, 500), piece(0, "removed", 1, 500), piece(1, "added", 0)]

    ids = [[part.id for split in planned(pieces) for part in split.sub_splits] for _ in range(2)]

    assert ids[0] == ids[1]
    assert len(set(ids[0])) == len(ids[0])


def test_small_commits_share_a_sub_split_as_long_as_their_rows_are_few() -> None:
    pieces = [piece(n, state, k) for n in range(4) for k, state in enumerate(("added", "removed"))]

    splits = planned(pieces, max_rows=40)

    sizes = [len(part.pieces) for split in splits for part in split.sub_splits]
    assert sizes == [4, 4]


@pytest.mark.parametrize(
    ("weight", "target", "count"),
    [(0, 100, 1), (100, 100, 1), (101, 100, 2), (10**9, 1, 4096), (5, 0, 5)],
)
def test_bucket_count_is_the_number_of_targets_that_the_weight_fills(
    weight: int, target: int, count: int
) -> None:
    assert bucket_count(weight, target) == count
