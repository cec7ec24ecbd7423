"""Place rows in the buckets of an exchange by target partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidegate.errors import TidegateError
from tidegate.model.wire import digest
from tidegate.read.exchange import BUCKET_BITS

if TYPE_CHECKING:
    import pyarrow as pa

    from tidegate.read.row_hash import Hashes
    from tidegate.stage.partition_split import PartitionComputer


class PartitionPlacement:
    """Places rows by partition: those of one partition share a bucket and are adjacent there.

    Rows that will be put aside, or whose partition has no name, are placed like the others: their
    problem is found when they are staged.

    Args:
        computer: of the rows' schema.
        buckets: their number, at least 1.
    """

    def __init__(self, computer: PartitionComputer, buckets: int) -> None:
        self._computer = computer
        self._known: dict[tuple[str | None, ...], int] = {}
        self.buckets = buckets

    def of(self, batch: pa.RecordBatch) -> Hashes:
        """Return the place of each row."""
        try:
            codes, values = self._computer.values(batch)
        except (TidegateError, ValueError, ArithmeticError):
            return np.zeros(batch.num_rows, dtype=np.uint64)
        return np.array([self._place(item) for item in values], dtype=np.uint64)[codes]

    def _place(self, values: tuple[str | None, ...]) -> int:
        if values not in self._known:
            bucket = int(digest(values, 12), 16) % self.buckets
            self._known[values] = bucket << BUCKET_BITS | len(self._known)
        return self._known[values]
