"""A sub-split's part in bringing the rows of one large commit together."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.model.wire import Value


@dataclass(frozen=True)
class Exchange(Value):
    """Which rows a sub-split reads, and whether it spreads or stages them (ICE-3.13).

    Stage 0 reads the pieces of one commit; each later stage reads one bucket of what all sub-splits
    of the stage before spread. The last stage stages part files, the others spread.
    """

    group: str
    """Hash of the pieces: the sub-splits that exchange rows with each other."""
    stages: int
    """The number of exchanges, which is also the number of the last stage."""
    buckets: int
    stage: int = 0
    bucket: int | None = None
    """The bucket that a later stage reads; None in stage 0."""
    net: bool = False
    """Whether the commit is the difference of two states, whose updates are not paired."""

    @property
    def spreads(self) -> bool:
        """Whether the rows go to buckets, not to part files."""
        return self.stage < self.stages


@dataclass(frozen=True)
class SpreadFile(Value):
    """One closed file with the rows that a sub-split spread over all buckets."""

    path: str
    """Relative to the plan's directory."""
    length: int
    rows: int
