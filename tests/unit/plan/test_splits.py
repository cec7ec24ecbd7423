"""Splits cover every physical row once, within their limits, the same way each time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import accumulate
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.config import SplitConfig
from tidegate.model.file_slice import Delta, DeltaKind, FileSlice
from tidegate.model.plan import Piece, Split
from tidegate.model.time_bounds import TimeBounds
from tidegate.physical import RowGroup as Group
from tidegate.plan import plan_splits
from tidegate.read.open_piece import in_rows

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass
class Files:
    """Files by their row groups; counts whose footers were read."""

    layout: dict[str, list[Group]]
    offsets: bool = False

    def __post_init__(self) -> None:
        self.footers: Counter[str] = Counter()
        for groups in self.layout.values():
            sizes = [group.size_bytes for group in groups]
            begins = list(accumulate(sizes, initial=0))[: len(groups)]
            groups[:] = map(lambda group, offset: replace(group, offset=offset), groups, begins)

    def pieces(self) -> list[Piece]:
        return [
            Piece(
                FileSlice(path, offsets=_begins(groups) if self.offsets else ()),
                sum(group.rows for group in groups),
                sum(group.size_bytes for group in groups),
            )
            for path, groups in self.layout.items()
        ]

    def row_groups(self, piece: Piece) -> Sequence[Group]:
        self.footers[piece.path] += 1
        return self.layout[piece.path]


def _begins(groups: list[Group]) -> tuple[int, ...]:
    return tuple(group.offset for group in groups if group.offset is not None)


def _split(files: Files, width: int = 1, parallelism: int = 1, **limits: int) -> tuple[Split, ...]:
    keys = {"target_size": 100, "open_cost": 1, "max_rows": 1_000_000, **limits}
    return plan_splits(
        files.pieces(), files.row_groups, SplitConfig.model_validate(keys), width, parallelism
    )


def _pieces(splits: tuple[Split, ...], files: Files) -> list[Piece]:
    """List the pieces as a reader finds their rows."""
    return [
        _found(piece, files) for split in splits for sub in split.sub_splits for piece in sub.pieces
    ]


def _found(piece: Piece, files: Files) -> Piece:
    return in_rows(piece, files.layout[piece.path]) if piece.byte_range else piece


_groups = st.lists(st.builds(Group, st.integers(0, 50), st.integers(0, 200)), max_size=6)
_files = st.builds(
    Files,
    st.lists(_groups, max_size=6).map(
        lambda found: {f"f{number}": groups for number, groups in enumerate(found)}
    ),
    st.booleans(),
)
_limits = st.fixed_dictionaries(
    {
        "target_size": st.integers(1, 300),
        "open_cost": st.integers(1, 20),
        "max_rows": st.integers(1, 60),
    }
)


@given(files=_files, limits=_limits, width=st.integers(1, 9), parallelism=st.integers(1, 8))
def test_every_physical_row_is_covered_exactly_once(
    files: Files, limits: dict[str, int], width: int, parallelism: int
) -> None:
    pieces = _pieces(_split(files, width, parallelism, **limits), files)

    covered = Counter(
        (piece.path, position)
        for piece in pieces
        for position in range(piece.row_start, piece.row_end)
    )
    expected = {
        (path, position)
        for path, groups in files.layout.items()
        for position in range(sum(group.rows for group in groups))
    }
    assert set(covered) == expected
    assert set(covered.values()) <= {1}


@given(files=_files, limits=_limits, width=st.integers(1, 9), parallelism=st.integers(1, 8))
def test_no_sub_split_has_more_than_max_rows(
    files: Files, limits: dict[str, int], width: int, parallelism: int
) -> None:
    splits = _split(files, width, parallelism, **limits)

    found = [
        sum(_found(piece, files).rows for piece in sub.pieces)
        for split in splits
        for sub in split.sub_splits
    ]
    assert max(found, default=0) <= limits["max_rows"]
    assert all(split.sub_splits for split in splits)


@given(files=_files, limits=_limits, parallelism=st.integers(1, 8))
def test_bytes_of_files_that_are_cut_add_up(
    files: Files, limits: dict[str, int], parallelism: int
) -> None:
    splits = _split(files, 1, parallelism, **limits)
    pieces = [piece for split in splits for sub in split.sub_splits for piece in sub.pieces]

    for path, groups in files.layout.items():
        has_rows = any(group.rows for group in groups)
        uncounted = files.footers[path] and has_rows
        counted = sum(group.size_bytes for group in groups if group.rows or not uncounted)
        assert sum(piece.size_bytes for piece in pieces if piece.path == path) == counted


@given(files=_files, limits=_limits)
def test_planning_twice_gives_the_same_ids(files: Files, limits: dict[str, int]) -> None:
    first, second = _split(files, **limits), _split(files, **limits)

    assert first == second
    assert [split.id for split in first] == [split.id for split in second]


@given(files=_files, limits=_limits)
def test_split_is_heavier_than_the_target_only_where_nothing_can_be_cut(
    files: Files, limits: dict[str, int]
) -> None:
    for split in _split(files, 1, 1, **limits):
        if split.weight <= limits["target_size"]:
            continue
        (piece,) = _pieces((split,), files)
        starts = accumulate(group.rows for group in files.layout[piece.path])
        assert not any(piece.row_start < start < piece.row_end for start in starts)


def test_small_files_share_a_split_and_no_footer_is_read() -> None:
    files = Files({f"f{number}": [Group(1, 2)] for number in range(100)})

    splits = _split(files, open_cost=10)

    assert [len(split.sub_splits[0].pieces) for split in splits] == [10] * 10
    assert not files.footers


@pytest.mark.parametrize("groups", [[], [Group(0, 0)]], ids=["none", "an empty one"])
def test_large_file_without_rows_is_read_all_the_same(groups: list[Group]) -> None:
    """Its deletes are what it lacks; the index of keys in its footer alone may be large."""
    slice = FileSlice("empty")
    pieces = [Piece(slice, 1, 400_000)]

    splits = plan_splits(pieces, lambda _: groups, SplitConfig(target_size=1000), 32, 1)

    assert [piece.slice for piece in _pieces(splits, Files({}))] == [slice]


def test_dense_file_of_many_rows_becomes_several_splits() -> None:
    # 13 million rows in 3.5 MB (ICE-5.5, 7.6): at 32 bytes a row, more than three times the target.
    files = Files({"dense": [Group(13_000_000, 3_500_000)]})
    config = SplitConfig()

    splits = plan_splits(files.pieces(), files.row_groups, config, 32, 1)

    assert len(splits) >= 4
    assert all(sub.rows <= config.max_rows for split in splits for sub in split.sub_splits)


def test_large_file_is_cut_between_row_groups_and_parts_join_again() -> None:
    files = Files({"large": [Group(10, 60) for _ in range(5)]})

    splits = _split(files, target_size=120)

    assert [(piece.row_start, piece.row_end) for piece in _pieces(splits, files)] == [
        (0, 20),
        (20, 40),
        (40, 50),
    ]


def test_large_file_of_one_row_group_needs_no_footer() -> None:
    files = Files({"large": [Group(10, 500)]}, offsets=True)

    splits = _split(files)

    assert [piece.rows for piece in _pieces(splits, files)] == [10]
    assert not files.footers


def test_offsets_out_of_order_are_not_trusted() -> None:
    files = Files({"large": [Group(5, 90), Group(5, 90)]})
    (piece,) = files.pieces()
    odd = replace(piece, slice=FileSlice(piece.path, offsets=(9, 4)))

    splits = plan_splits([odd], files.row_groups, SplitConfig(target_size=100, open_cost=1), 1, 1)

    assert len(splits) == 2


def test_row_group_above_max_rows_is_cut_by_rows() -> None:
    files = Files({"f": [Group(3, 3), Group(10, 10)]})

    splits = _split(files, max_rows=4)

    assert [sub.rows for split in splits for sub in split.sub_splits] == [3, 3, 3, 4]
    assert max(split.weight for split in splits) <= 100


def test_large_file_with_offsets_is_cut_there_without_a_footer() -> None:
    files = Files({"large": [Group(10, 60) for _ in range(5)]}, offsets=True)

    splits = _split(files, target_size=120)

    assert [(piece.row_start, piece.row_end) for piece in _pieces(splits, files)] == [
        (0, 20),
        (20, 40),
        (40, 50),
    ]
    assert not files.footers


def test_row_groups_behind_the_length_in_the_manifest_are_in_the_last_part() -> None:
    files = Files({"large": [Group(10, 60) for _ in range(5)]})
    (piece,) = files.pieces()
    short = replace(piece, size_bytes=200, slice=FileSlice(piece.path, offsets=(0, 60, 120)))

    splits = plan_splits([short], files.row_groups, SplitConfig(target_size=100, open_cost=1), 1, 1)

    found = _pieces(splits, files)
    assert [(piece.row_start, piece.row_end) for piece in found] == [(0, 10), (10, 20), (20, 50)]


def test_parts_of_two_files_whose_rows_are_guessed_share_no_sub_split() -> None:
    layout = {name: [Group(10, 40) for _ in range(3)] for name in ("one", "two")}

    splits = _split(Files(layout, offsets=True))

    paths = [[{piece.path for piece in sub.pieces} for sub in it.sub_splits] for it in splits]
    assert paths == [[{"one"}], [{"one"}, {"two"}], [{"two"}]]


def test_offset_outside_the_file_is_not_trusted() -> None:
    files = Files({"large": [Group(5, 90), Group(5, 90)]})
    (piece,) = files.pieces()
    odd = replace(piece, slice=FileSlice(piece.path, offsets=(4, 900)))

    splits = plan_splits([odd], files.row_groups, SplitConfig(target_size=100, open_cost=1), 1, 1)

    assert [piece.byte_range for piece in _pieces(splits, files)] == [None, None]
    assert files.footers["large"] == 1


def test_dense_row_group_is_cut_by_rows_without_a_footer() -> None:
    files = Files({"dense": [Group(1_000, 5)]}, offsets=True)

    splits = _split(files, width=1, target_size=250, open_cost=10)

    assert [piece.rows for piece in _pieces(splits, files)] == [250] * 4
    assert not files.footers


def test_row_group_that_costs_much_to_decode_twice_stays_whole() -> None:
    files = Files({"wide": [Group(1_000, 50)]}, offsets=True)

    assert len(_split(files, width=1, target_size=250, open_cost=10)) == 1


def test_dense_row_groups_behind_offsets_need_the_footer() -> None:
    files = Files({"dense": [Group(1_000, 5), Group(1_000, 5)]}, offsets=True)

    splits = _split(files, width=1, target_size=250, open_cost=10)

    assert [piece.rows for piece in _pieces(splits, files)] == [250] * 8
    assert files.footers["dense"] == 1


def test_stripes_are_found_in_the_footer_as_offsets_do_not_lead_to_them() -> None:
    files = Files({"orc": [Group(5, 90), Group(5, 90)]}, offsets=True)
    (piece,) = files.pieces()
    orc = replace(piece, slice=replace(piece.slice, file_format="orc"))

    splits = plan_splits([orc], files.row_groups, SplitConfig(target_size=100, open_cost=1), 1, 1)

    assert [piece.byte_range for piece in _pieces(splits, files)] == [None, None]


def _delta(path: str, length: int) -> Delta:
    return Delta(path, DeltaKind.POSITIONS, "parquet", length, 1, 1)


def test_every_part_of_a_cut_file_keeps_its_deletes() -> None:
    files = Files({"f": [Group(10, 60) for _ in range(5)]})
    (piece,) = files.pieces()
    deleted = replace(piece, slice=replace(piece.slice, deltas=(_delta("d", 1),)))

    splits = plan_splits(
        [deleted], files.row_groups, SplitConfig(target_size=100, open_cost=1), 1, 1
    )

    assert {piece.slice.deltas for piece in _pieces(splits, files)} == {(_delta("d", 1),)}


def test_large_deletes_do_not_cut_a_small_file() -> None:
    files = Files({"f": [Group(10, 10) for _ in range(5)]})
    (piece,) = files.pieces()
    deleted = replace(piece, slice=replace(piece.slice, deltas=(_delta("d", 1_000),)))

    splits = plan_splits(
        [deleted], files.row_groups, SplitConfig(target_size=100, open_cost=1), 1, 1
    )

    assert len(splits) == 1
    assert not files.footers


def test_split_says_what_most_of_its_weight_is_made_of() -> None:
    files = Files({"a": [Group(60, 1)], "b": [Group(1, 20)], "c": [Group(1, 1)]})

    (split,) = _split(files, open_cost=10)

    assert (split.weight, split.term) == (60 + 20 + 10, "rows")


def _moment(day: int) -> datetime:
    return datetime(2026, 1, day, tzinfo=UTC)


def test_split_carries_the_bounds_of_its_files() -> None:
    pieces = [
        Piece(FileSlice("a"), 1, 1, event_times=TimeBounds(_moment(2), _moment(3))),
        Piece(FileSlice("b"), 1, 1, event_times=TimeBounds(_moment(1), _moment(2))),
        Piece(FileSlice("c"), 1, 1, event_times=TimeBounds()),
    ]

    (split,) = plan_splits(pieces, lambda _: (), SplitConfig(), 1, 1)

    assert split.event_times == TimeBounds(_moment(1), _moment(3))


def test_split_with_a_file_without_bounds_has_none() -> None:
    pieces = [
        Piece(FileSlice("a"), 1, 1, event_times=TimeBounds(_moment(2), _moment(3))),
        Piece(FileSlice("b"), 1, 1),
    ]

    (split,) = plan_splits(pieces, lambda _: (), SplitConfig(), 1, 1)

    assert split.event_times is None


def test_idle_workers_lower_the_target_but_not_below_a_least_size() -> None:
    mebibyte = 1 << 20
    files = Files({f"f{number}": [Group(1, 24 * mebibyte)] for number in range(8)})

    def count(parallelism: int) -> int:
        config = SplitConfig(target_size=384 * mebibyte, open_cost=1)
        return len(plan_splits(files.pieces(), files.row_groups, config, 1, parallelism))

    assert (count(1), count(2), count(4), count(64)) == (1, 2, 4, 4)


def test_nothing_to_read_gives_no_splits() -> None:
    assert _split(Files({})) == ()


def test_file_that_nobody_decodes_is_not_cut() -> None:
    files = Files({name: [Group(100, 100) for _ in range(4)] for name in "abc"})
    keys = SplitConfig(target_size=100, open_cost=1, max_rows=50)
    small = Piece(FileSlice("small"), 10, 10)
    asked: list[str] = []

    def uncut(piece: Piece) -> bool:
        asked.append(piece.path)
        return piece.path == "b"

    splits = plan_splits([*files.pieces(), small], files.row_groups, keys, 1, 1, uncut)

    pieces = [piece for split in splits for sub in split.sub_splits for piece in sub.pieces]
    assert [piece for piece in pieces if piece.path == "b"] == [files.pieces()[1]]
    assert sum(piece.rows for piece in pieces if piece.path in {"a", "c"}) == 800
    assert len([piece for piece in pieces if piece.path in {"a", "c"}]) > 8
    assert sorted(asked) == ["a", "b", "c"]
    assert set(files.footers) == {"a", "c"}
