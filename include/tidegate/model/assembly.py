"""A sub-split's part in assembling rows whose part files would be many and small."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.model.wire import Value

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
