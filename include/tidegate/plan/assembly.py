"""Plan the sub-splits that assemble rows which others would write to many small files (design §4).

With `target.shuffle_by_partition` they assemble all rows (PC-O29).

Whether there are such rows is known only once they are read. These splits are therefore planned
wherever such rows are possible; they run last, and do nothing if no rows were handed on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.model.assembly import MANY_PARTITIONS, Assembly
from tidegate.model.plan import Split, SubSplit
from tidegate.plan.splits import merged_bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.model.time_bounds import TimeBounds
    from tidegate.plan.fan_out import FanOut

_BUCKET_WEIGHT = 64 << 20
"""In bytes; in a bucket of this size, rows wait in memory for others of their partition."""
_MOST_BUCKETS = 512
_SMALL_FILE = 8 << 20
"""Average bytes of source files per part file, below which part files are small."""
_MANY_FILES = 64
"""Fewer part files are not a problem, however small."""


def with_assembly(
    splits: Sequence[Split],
    fan_out: FanOut | None,
    target_size: int,
    row_width: int,
    share_size: int | None = None,
) -> tuple[Split, ...]:
    """Add splits that assemble, unless no sub-split can have rows of many partitions.

    Args:
        splits: the splits of a window.
        fan_out: counts the partitions of bounds; None: the target has no partitions.
        target_size: weight of a split, in bytes.
        row_width: bytes that one row takes in memory.
        share_size: weight of the rows of one partition that one task writes, if every row is handed
            on; None: rows are handed on where files would be small.

    Returns:
        The given splits, followed by at most one for each of 512 buckets.
    """
    giving = [split for split in splits if any(part.may_hand_on for part in split.sub_splits)]
    parts = [part for split in giving for part in split.sub_splits if part.may_hand_on]
    weight = sum(_rows_weight(split, row_width) for split in giving)
    # A single light sub-split has all rows of its partitions in memory.
    is_alone = len(parts) == 1 and weight <= _BUCKET_WEIGHT
    if fan_out is None or is_alone:
        return tuple(splits)
    many, shares = 1, None
    if share_size is None:
        bounds = [merged_bounds(part.pieces) for part in parts]
        many = _many(parts, bounds, fan_out)
        if not any(_may_scatter(it, fan_out, many) for it in bounds):
            return tuple(splits)
    elif parts:
        shares = max(1, weight // share_size)
    else:
        return tuple(splits)
    size = max(1, min(target_size, _BUCKET_WEIGHT))
    buckets = max(1, min(-(-weight // size), _MOST_BUCKETS))
    stage = 1 + max(split.stage for split in splits)
    return (
        *splits,
        *(
            Split(
                (SubSplit((), assembly=Assembly(bucket, buckets, stage, many, shares)),),
                weight // buckets,
                giving[0].term,
            )
            for bucket in range(buckets)
        ),
    )


def _rows_weight(split: Split, row_width: int) -> int:
    """Return what the rows of a split weigh; those handed on are not in its many files any more."""
    pieces = [piece for part in split.sub_splits for piece in part.pieces]
    sizes = (max(piece.size_bytes, piece.rows * row_width) for piece in pieces)
    # What gathers an exchange has no pieces, and its weight is that of rows.
    return sum(sizes) or split.weight


def _many(parts: Sequence[SubSplit], bounds: Sequence[TimeBounds | None], fan_out: FanOut) -> int:
    """Return from how many partitions on a sub-split hands rows on.

    From two on if bounds already show that the sub-splits together would write many small files of
    many partitions, of which each has few.
    """
    pieces = [piece for part in parts for piece in part.pieces]
    partitions = (fan_out.at_least(merged_bounds(pieces)) or 0) if pieces else 0
    # A single row of the year 9999 makes a span of millions, but one file at most.
    files = sum(
        min(fan_out.at_least(it) or 0, part.rows) for part, it in zip(parts, bounds, strict=True)
    )
    is_small = sum(piece.size_bytes for piece in pieces) < files * _SMALL_FILE
    is_many = files >= max(_MANY_FILES, 2 * partitions)
    return 2 if partitions >= MANY_PARTITIONS and is_small and is_many else MANY_PARTITIONS


def _may_scatter(bounds: TimeBounds | None, fan_out: FanOut, many: int) -> bool:
    most = fan_out.at_most(bounds)
    return most is None or most >= many
