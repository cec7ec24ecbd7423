"""A sub-split's part in assembling rows that belong to the same partitions."""

from __future__ import annotations

from dataclasses import dataclass, field

from tidegate.model.wire import SPARSE, Value

MANY_PARTITIONS = 32
"""With fewer in a sub-split, files of its own cost readers little, and the way through assembly
would take half as long as all the rest."""


@dataclass(frozen=True)
class Assembly(Value):
    """Which rows a sub-split assembles, of those that the sub-splits before it handed on.

    Rows of one target partition share a bucket (design §4).
    """

    bucket: int
    buckets: int
    stage: int
    """How many stages of the plan have to be through before."""
    many: int
    """From how many partitions of a sub-split on its rows are handed on."""
    shares: int | None = field(default=None, metadata={SPARSE: True})
    """If every row is handed on: into how many shares those of a partition that has all of them are
    divided, at least 1; of one that has half of the rows, into half as many. None: only rows that
    would make small files are handed on, and those of a partition are not divided."""
