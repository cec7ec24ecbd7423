"""Splits cover every physical row once, within their limits, the same way each time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.config import SplitConfig
from tidegate.model.plan import Piece, Split
from tidegate.plan import plan_splits, row_width
from tidegate.plan.weights import piece_weight

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Group:
    rows: int
    size_bytes: int


@dataclass
class Files:
    """Files by their row groups; counts whose footers were read."""

    layout: dict[str, list[Group]]
    offsets: bool = False

    def __post_init__(self) -> None:
        self.footers: Counter[str] = Counter()

    def pieces(self) -> list[Piece]:
        return [
            Piece(
                path,
                sum(group.rows for group in groups),
                sum(group.size_bytes for group in groups),
                details={"split_offsets": list(range(len(groups)))} if self.offsets else {},
            )
            for path, groups in self.layout.items()
        ]

    def row_groups(self, piece: Piece) -> Sequence[Group]:
        self.footers[piece.path] += 1
        return self.layout[piece.path]


def _split(files: Files, width: int = 1, parallelism: int = 1, **limits: int) -> tuple[Split, ...]:
    keys = {"target_size": 100, "open_cost": 1, "max_rows": 1_000_000, **limits}
    return plan_splits(
        files.pieces(), files.row_groups, SplitConfig.model_validate(keys), width, parallelism
    )


def _pieces(splits: tuple[Split, ...]) -> list[Piece]:
    return [piece for split in splits for sub in split.sub_splits for piece in sub.pieces]


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
    pieces = _pieces(_split(files, width, parallelism, **limits))

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

    assert all(sub.rows <= limits["max_rows"] for split in splits for sub in split.sub_splits)
    assert all(split.sub_splits for split in splits)


@given(files=_files, limits=_limits, parallelism=st.integers(1, 8))
def test_bytes_of_files_that_are_cut_add_up(
    files: Files, limits: dict[str, int], parallelism: int
) -> None:
    pieces = _pieces(_split(files, 1, parallelism, **limits))

    for path, groups in files.layout.items():
        counted = sum(group.size_bytes for group in groups if group.rows or not files.footers[path])
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
        (piece,) = [piece for sub in split.sub_splits for piece in sub.pieces]
        starts = accumulate(group.rows for group in files.layout[piece.path])
        assert not any(piece.row_start < start < piece.row_end for start in starts)


def test_small_files_share_a_split_and_no_footer_is_read() -> None:
    files = Files({f"f{number}": [Group(1, 2)] for number in range(100)})

    splits = _split(files, open_cost=10)

    assert [len(split.sub_splits[0].pieces) for split in splits] == [10] * 10
    assert not files.footers


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

    assert [(piece.row_start, piece.row_end) for piece in _pieces(splits)] == [
        (0, 20),
        (20, 40),
        (40, 50),
    ]


def test_large_file_of_one_row_group_needs_no_footer() -> None:
    files = Files({"large": [Group(10, 500)]}, offsets=True)

    splits = _split(files)

    assert [piece.rows for piece in _pieces(splits)] == [10]
    assert not files.footers


def test_offsets_out_of_order_are_not_trusted() -> None:
    files = Files({"large": [Group(5, 90), Group(5, 90)]})
    (piece,) = files.pieces()
    odd = Piece(piece.path, piece.rows, piece.size_bytes, details={"split_offsets": [9, 4]})

    splits = plan_splits([odd], files.row_groups, SplitConfig(target_size=100, open_cost=1), 1, 1)

    assert len(splits) == 2


def test_row_group_above_max_rows_is_cut_by_rows() -> None:
    files = Files({"f": [Group(3, 3), Group(10, 10)]})

    splits = _split(files, max_rows=4)

    assert [sub.rows for split in splits for sub in split.sub_splits] == [3, 3, 3, 4]
    assert max(split.weight for split in splits) <= 100


def test_idle_workers_lower_the_target_but_not_below_sixteen_mebibytes() -> None:
    mebibyte = 1 << 20
    files = Files({f"f{number}": [Group(1, 8 * mebibyte)] for number in range(8)})

    def count(parallelism: int) -> int:
        config = SplitConfig(target_size=128 * mebibyte, open_cost=1)
        return len(plan_splits(files.pieces(), files.row_groups, config, 1, parallelism))

    assert (count(1), count(2), count(4), count(64)) == (1, 2, 4, 4)


def test_nothing_to_read_gives_no_splits() -> None:
    assert _split(Files({})) == ()


@pytest.mark.parametrize(
    ("rows", "size_bytes", "weight"),
    [(1, 500, 500), (1_000, 1, 32_000), (1, 1, 40)],
    ids=["bytes", "rows", "opening"],
)
def test_weight_is_the_heaviest_of_three(rows: int, size_bytes: int, weight: int) -> None:
    assert piece_weight(Piece("f", rows, size_bytes), width=32, open_cost=40) == weight


def test_row_width_counts_fixed_types_and_assumes_the_others() -> None:
    schema = pa.schema(
        [
            ("flag", pa.bool_()),
            ("id", pa.int64()),
            ("price", pa.decimal128(9, 2)),
            ("name", pa.string()),
            ("tags", pa.list_(pa.int8())),
            ("by", pa.map_(pa.string(), pa.int8())),
            ("uuid", pa.uuid()),
            ("place", pa.struct([("x", pa.float32()), ("town", pa.string())])),
        ]
    )

    assert row_width(schema) == 1 + 8 + 16 + 32 + 32 + 32 + 16 + (4 + 32)
    assert row_width(pa.schema([])) == 1
