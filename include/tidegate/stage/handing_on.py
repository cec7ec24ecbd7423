"""Decide which rows would make many small files, and hand them on to be assembled (design §4).

A sub-split writes a file for every partition of its rows. If many sub-splits have a few rows of
each of many partitions, the files are slow to write and slow to read. Such rows go to sub-splits
that run later, each of which has all rows of its partitions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidegate.model.wire import text_digest
from tidegate.read.exchange import BUCKET_BITS
from tidegate.stage.partition_split import BatchSplit

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from tidegate.model.partition import Partition
    from tidegate.physical.arrays import Flags, Integers
    from tidegate.read.row_hash import Hashes

_LARGE_SHARE = 8
"""A partition with more than one in this many rows of a batch fills files of its own; in an
assembly, a single task would have most of the work."""

Append = Callable[["pa.RecordBatch", "Hashes"], None]
"""Takes rows with their places, see `read.exchange`."""


@dataclass(frozen=True)
class Sharing:
    """How the rows of large partitions are divided if every row is handed on (PC-O29)."""

    shares: int
    """Of a partition that has all rows, see `Assembly`."""
    turn: float
    """The position of the sub-split among all that hand on, at least 0 and less than 1."""

    def of(self, counts: Integers) -> Integers:
        """Return the share that the rows of each partition of a batch go to.

        Sub-splits that follow each other have the same one, so that rows stay in their order.

        Args:
            counts: the number of rows of each partition in the batch.
        """
        found: Integers = (self.turn * (counts * self.shares // counts.sum())).astype(np.int64)
        return found


class HandedOn:
    """The rows that one sub-split hands on.

    Args:
        append: takes the rows.
        buckets: the number of sub-splits that they are divided over, at least 1.
        many: from how many partitions of the sub-split on its rows are handed on.
        sharing: how every row is handed on; None: those that would make small files.
    """

    def __init__(
        self, append: Append, buckets: int, many: int, sharing: Sharing | None = None
    ) -> None:
        self.rows = 0
        """The number of rows handed on."""
        self._append = append
        self._buckets = buckets
        self._many = many
        self._sharing = sharing
        self._places: dict[Partition, tuple[int, int]] = {}

    def scattered(
        self, split: BatchSplit, batch: pa.RecordBatch
    ) -> tuple[BatchSplit, pa.RecordBatch]:
        """Hand on the rows of a batch that is scattered over many partitions, or every row.

        Args:
            split: the split of the batch.
            batch: all columns of its rows.

        Returns:
            The rows that are written to files here, and their partitions.
        """
        counts = np.bincount(split.codes, minlength=len(split.partitions))
        shares = self._sharing.of(counts) if self._sharing else np.zeros_like(counts)
        found = zip(split.partitions, shares.tolist(), strict=True)
        places = np.array([self._place(item, share) for item, share in found], dtype=np.uint64)
        if len(split.partitions) < self._many:
            return split, batch
        small = counts * _LARGE_SHARE <= batch.num_rows
        if self._sharing or small.all():
            self._hand_on(batch, places[split.codes])
            return _rest(split, batch, np.zeros(batch.num_rows, dtype=bool))
        scattered: Flags = small[split.codes]
        self._hand_on(batch.filter(scattered), places[split.codes[scattered]])
        return _rest(split, batch, ~scattered)

    def take(self, partition: Partition, batches: Sequence[pa.RecordBatch]) -> bool:
        """Hand on rows that would be a small file of a partition.

        Returns:
            Whether they were taken; they are not if a sub-split has few partitions.
        """
        if len(self._places) < self._many:
            return False
        place = self._place(partition)
        for batch in batches:
            self._hand_on(batch, np.full(batch.num_rows, place, dtype=np.uint64))
        return True

    def _hand_on(self, batch: pa.RecordBatch, places: Hashes) -> None:
        self._append(batch, places)
        self.rows += batch.num_rows

    def _place(self, partition: Partition, share: int = 0) -> int:
        """Return the place for rows of a partition: one bucket per share, next to each other."""
        if partition not in self._places:
            first = int(text_digest(partition.path, 12), 16)
            self._places[partition] = first, len(self._places)
        first, order = self._places[partition]
        return (first + share) % self._buckets << BUCKET_BITS | order


def _rest(
    split: BatchSplit, batch: pa.RecordBatch, left: Flags
) -> tuple[BatchSplit, pa.RecordBatch]:
    """Return the marked rows, and their partitions."""
    found, codes = np.unique(split.codes[left], return_inverse=True)
    partitions = tuple(split.partitions[code] for code in found.tolist())
    return BatchSplit(codes, partitions), batch.filter(left)
