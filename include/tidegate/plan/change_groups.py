"""Make the splits of commits' changes, so that rows that may cancel are settled together.

The rows of a small commit are settled by one sub-split, in memory. Those of a large one go through
an exchange: sub-splits that spread them over buckets, then sub-splits that gather one bucket each
(ICE-3.13). Commits that only add or only remove rows are read like any other files.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.model.exchange import Exchange
from tidegate.model.plan import Split, SubSplit
from tidegate.model.row_changes import can_cancel, change_ordinal, is_net
from tidegate.model.wire import items_digest
from tidegate.plan.exchanges import gathering, spreading
from tidegate.plan.packing import pack
from tidegate.plan.splits import merged_bounds, plan_splits
from tidegate.plan.weights import Scale

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tidegate.config import SplitConfig
    from tidegate.model.plan import Piece
    from tidegate.plan.cuts import RowGroups

_MOST_BUCKETS = 4096


@dataclass(frozen=True)
class ChangeGroups:
    """The pieces of a window, by how their rows are settled; each in source order."""

    plain: tuple[Piece, ...]
    """The pieces of commits whose rows cannot cancel."""
    small: tuple[tuple[Piece, ...], ...]
    """The pieces of one commit each, to be settled in memory."""
    large: tuple[tuple[Piece, ...], ...]
    """The pieces of one commit each, too large for that."""

    @classmethod
    def of(cls, units: Iterable[Piece], split: SplitConfig, row_width: int) -> ChangeGroups:
        """Group pieces by commit, and commits by weight."""
        commits: dict[int | None, list[Piece]] = defaultdict(list)
        for piece in units:
            commits[change_ordinal(piece)].append(piece)
        plain: list[Piece] = []
        small, large = [], []
        for pieces in commits.values():
            if not can_cancel(pieces):
                plain += pieces
            elif is_small(pieces, split, row_width):
                small.append(tuple(pieces))
            else:
                large.append(tuple(pieces))
        return cls(tuple(plain), tuple(small), tuple(large))


def is_small(pieces: Sequence[Piece], split: SplitConfig, row_width: int) -> bool:
    """Return whether the rows of one commit fit into memory at once."""
    rows = sum(piece.rows for piece in pieces)
    size = max(sum(piece.size_bytes for piece in pieces), rows * row_width)
    return rows <= split.max_rows and size <= split.target_size


def plan_change_splits(
    units: Iterable[Piece],
    row_groups: RowGroups,
    split: SplitConfig,
    row_width: int,
    parallelism: int,
    exchanges: int,
) -> tuple[Split, ...]:
    """Turn the changed files of a window into splits; see `plan_splits`.

    Args:
        units: whole files in source order, with their changes.
        row_groups: reads a file's footer.
        split: the pipeline's `source.split`.
        row_width: bytes that one row takes in memory.
        parallelism: how many splits can be read at once.
        exchanges: the number of exchanges that bring rows together, `SettleRules.exchanges`; 0 if
            nothing is settled.
    """

    def cut_up(pieces: Iterable[Piece]) -> tuple[Split, ...]:
        return plan_splits(pieces, row_groups, split, row_width, parallelism)

    if not exchanges:
        return cut_up(units)
    groups = ChangeGroups.of(units, split, row_width)
    splits = [*cut_up(groups.plain), *_settled_in_memory(groups.small, split, row_width)]
    for pieces in groups.large:
        splits += _exchanged(cut_up(pieces), pieces, exchanges, split)
    return tuple(splits)


def bucket_count(weight: int, target: int) -> int:
    """Return the number of buckets with which each is about as heavy as the target."""
    return max(1, min(_MOST_BUCKETS, -(-weight // max(target, 1))))


def _settled_in_memory(
    groups: Sequence[Sequence[Piece]], split: SplitConfig, row_width: int
) -> Iterator[Split]:
    scale = Scale(row_width, split.open_cost)

    def weight_of(pieces: Sequence[Piece]) -> int:
        return sum(map(scale.weight, pieces))

    for packed in pack(groups, weight_of, split.target_size, split.lookback):
        pieces = [piece for group in packed for piece in group]
        sub_splits = tuple(_whole_commits(packed, split.max_rows))
        weight, term = scale.weigh(pieces)
        yield Split(sub_splits, weight, term, merged_bounds(pieces))


def _whole_commits(groups: Iterable[Sequence[Piece]], max_rows: int) -> Iterator[SubSplit]:
    """Combine commits as long as they have few rows; no commit is divided."""
    current: list[Piece] = []
    rows = 0
    for group in groups:
        more = sum(piece.rows for piece in group)
        if current and rows + more > max_rows:
            yield SubSplit(tuple(current))
            current, rows = [], 0
        current += group
        rows += more
    if current:
        yield SubSplit(tuple(current))


def _exchanged(
    splits: Sequence[Split], pieces: Sequence[Piece], exchanges: int, split: SplitConfig
) -> Iterator[Split]:
    weight = sum(item.weight for item in splits)
    buckets = bucket_count(weight, split.target_size)
    group = items_digest((piece.to_text() for piece in pieces), 12)
    begin = Exchange(group, exchanges, buckets, net=is_net(pieces))
    yield from spreading(splits, begin)
    yield from gathering(begin, weight, splits[0].term)
