"""Make the splits of a plan: cut, weigh, pack, divide into sub-splits of bounded rows."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tidegate.model.plan import Piece, Split, SubSplit
from tidegate.plan.cuts import Limits, RowGroups, cut, join_adjacent
from tidegate.plan.packing import pack
from tidegate.plan.weights import piece_weight

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tidegate.config import SplitConfig

_SMALLEST_TARGET = 16 << 20


def plan_splits(
    units: Iterable[Piece],
    row_groups: RowGroups,
    split: SplitConfig,
    row_width: int,
    parallelism: int,
) -> tuple[Split, ...]:
    """Turn the whole files of a window into splits; the same input gives the same splits and ids.

    Args:
        units: whole files in source order.
        row_groups: reads a file's footer; called only for files that may have to be cut.
        split: the pipeline's `source.split`.
        row_width: bytes that one row takes in memory, from `row_width(schema)`.
        parallelism: how many splits can be read at once; fewer splits lower the target (ICE-5.7).

    Returns:
        Splits in the order of their first files; every physical row is in exactly one sub-split.
    """
    files = list(units)
    weigh = partial(piece_weight, width=row_width, open_cost=split.open_cost)
    target = _adapted_target(sum(map(weigh, files)), split.target_size, parallelism)
    parts = cut(files, row_groups, Limits(target, split.max_rows, split.open_cost, row_width))
    return tuple(
        Split(tuple(_sub_splits(packed, split.max_rows)), sum(map(weigh, packed)))
        for packed in pack(parts, weigh, target)
    )


def _adapted_target(total: int, target: int, parallelism: int) -> int:
    """Lower the target where it would leave workers idle; never raise it (ICE-5.7)."""
    return min(target, max(total // max(parallelism, 1), min(_SMALLEST_TARGET, target), 1))


def _sub_splits(pieces: Sequence[Piece], max_rows: int) -> Iterator[SubSplit]:
    current: list[Piece] = []
    rows = 0
    for piece in pieces:
        if current and rows + piece.rows > max_rows:
            yield SubSplit(tuple(join_adjacent(current)))
            current, rows = [], 0
        current.append(piece)
        rows += piece.rows
    if current:
        yield SubSplit(tuple(join_adjacent(current)))
