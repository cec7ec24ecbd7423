"""Decide whether rows are exchanged by target partition before they are staged (design §6).

A sub-split writes a file for every partition that its rows belong to. If each of many sub-splits
has rows of many partitions, there would be many tiny files, slow to write and worse to read. In
this case the rows go through an exchange first, so that one sub-split has all rows of a partition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from tidegate.model.exchange import Exchange
from tidegate.model.partition import Transform
from tidegate.model.wire import items_digest
from tidegate.plan.exchanges import gathering, spreading
from tidegate.plan.splits import merged_bounds

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tidegate.model.plan import Split
    from tidegate.model.time_bounds import TimeBounds

_SMALL_FILE = 8 << 20
"""Average bytes of source files per part file, below which part files are tiny."""
_MANY_FILES = 64
"""Fewer part files are not a problem, however small."""
_MANY_PARTITIONS = 32
"""With fewer, a partition has one file per sub-split, which costs readers little, while the
exchange would take half as long as everything else."""
_MOST_BUCKETS = 512
_LIGHT_BUCKET = 4 << 20
"""Weight, in bytes, below which rows of many partitions are buffered in memory."""
_MOST_WAITING = 512
"""The number of partitions whose rows may be buffered in one sub-split."""


@dataclass(frozen=True)
class FanOut:
    """Counts the partitions of a target that have rows between two event times.

    Bounds do not tell about other keys, which are counted as if they had one value.
    """

    transform: Transform
    """The finest of the keys that are made from the event time."""
    timezone: str
    most: int | None = None
    """The most partitions that are written, as in a rebuild; None: all."""

    def of(self, bounds: TimeBounds | None) -> int | None:
        """Return the number of partitions; None if the bounds are unknown."""
        if bounds is None:
            return None
        if bounds.smallest is None or bounds.largest is None:
            return 1
        count = self._unit(bounds.largest) - self._unit(bounds.smallest) + 1
        return count if self.most is None else min(count, self.most)

    def _unit(self, moment: datetime) -> int:
        """Return the number of hours, days or months of wall clock time."""
        try:
            local = moment.astimezone(ZoneInfo(self.timezone))
        except OverflowError:
            # The first and last days of the calendar cannot be converted to another zone.
            local = moment
        if self.transform is Transform.MONTH:
            return local.year * 12 + local.month
        day = local.toordinal()
        return day * 24 + local.hour if self.transform is Transform.HOUR else day


@dataclass(frozen=True)
class FanOutLimits:
    """The limits of one sub-split."""

    partitions: int
    """The number of part files that it keeps open."""
    weight: int
    """The weight of a split, in bytes, at least 1."""


def exchanged_by_partition(
    splits: Sequence[Split], fan_out: FanOut, limits: FanOutLimits
) -> tuple[Split, ...]:
    """Exchange rows by partition if they would otherwise be written to many tiny files.

    Args:
        splits: the splits of a window; those with an exchange for settling stay as they are.
        fan_out: counts the partitions of bounds.
        limits: of the sub-splits that stage.

    Returns:
        The splits, which spread their rows, and splits that gather a bucket of partitions each.
    """
    plain: list[Split] = []
    others: list[Split] = []
    for split in splits:
        is_exchanged = any(part.exchange for part in split.sub_splits)
        (others if is_exchanged else plain).append(split)
    parts = [part for split in plain for part in split.sub_splits]
    pieces = [piece for part in parts for piece in part.pieces]
    touched = [fan_out.of(merged_bounds(part.pieces)) for part in parts]
    span = fan_out.of(merged_bounds(pieces)) if pieces else None
    size_bytes = sum(piece.size_bytes for piece in pieces)
    if span is None or not _is_worth_it(touched, span, size_bytes, limits):
        return tuple(splits)
    # A single row of the year 9999 makes a span of millions.
    partitions = min(span, sum(piece.rows for piece in pieces))
    weight = sum(split.weight for split in plain)
    begin = Exchange(
        group=items_digest((piece.to_text() for piece in pieces), 12),
        stages=1,
        buckets=_bucket_count(partitions, weight, limits),
        partitions=partitions,
    )
    return (*spreading(plain, begin), *others, *gathering(begin, weight, plain[0].term))


def _is_worth_it(
    touched: Sequence[int | None], partitions: int, size_bytes: int, limits: FanOutLimits
) -> bool:
    """Return whether sub-splits would write too many files, compared with one per partition."""
    if partitions < _MANY_PARTITIONS:
        return False
    known = [count for count in touched if count is not None]
    files = sum(known)
    tiny = files >= _MANY_FILES and size_bytes < files * _SMALL_FILE
    # A sub-split with more partitions than open files writes some of them more than once.
    crowded = max(known, default=0) > limits.partitions
    return tiny and (files >= 2 * partitions or crowded)


def _bucket_count(partitions: int, weight: int, limits: FanOutLimits) -> int:
    """Return the number of sub-splits that share the partitions, at least 1."""
    with_open_files = min(-(-partitions // limits.partitions), -(-weight // _LIGHT_BUCKET))
    wanted = max(with_open_files, -(-partitions // _MOST_WAITING), -(-weight // limits.weight))
    return max(1, min(wanted, partitions, _MOST_BUCKETS))
