"""The rows that every partition has upstream, as one read found them (PC-C03)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidegate.model.partition import Partition

Values = tuple[str | None, ...]
"""The values of a partition in the order of the target's keys; None for NULL."""


@dataclass(frozen=True)
class UpstreamCounts:
    """The counts of all partitions, or why there are none."""

    place: str
    """Where they were read: a query, a file or a table."""
    rows: Mapping[Values, int]
    problem: str | None = None
    """Why they could not be read; None if they were."""

    def of(self, partition: Partition) -> int | None:
        """Return the rows of a partition; None if the counts do not mention it."""
        return self.rows.get(tuple(value for _, value in partition.values))
