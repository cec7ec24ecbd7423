"""Partitions that a calendar expects, and the alarms about them (PC-C04)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from tidegate.model.wire import Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidegate.model.partition import Partition
    from tidegate.model.watermark import Evaluation

MISSING, FAILING = "missing", "failing"


@dataclass(frozen=True)
class Alarm(Value):
    """What was told once about an expected partition that is due and not published."""

    at: datetime
    revision: int
    """The revision that stood then; after another one an alarm may be raised again."""
    kind: str
    """`missing`: it has no rows; `failing`: it is due, and another condition fails."""
    why: str

    def covers(self, other: Alarm) -> bool:
        """Return whether another alarm would tell nothing new."""
        return self.revision == other.revision and self.kind in {other.kind, FAILING}


@dataclass(frozen=True)
class Position(Value):
    """How far a calendar was read."""

    calendar: str
    """Digest of what the pipeline file says; another calendar is read from its beginning."""
    intervals: int
    """The number of intervals since its start whose partitions are known to the ledger."""


@dataclass(frozen=True)
class DuePartition:
    """An expected partition whose turn has come."""

    partition: Partition
    start: datetime
    end: datetime


@dataclass(frozen=True)
class Review:
    """What a look at all pending and expected partitions found."""

    marked: tuple[Partition, ...] = ()
    """Expected partitions without rows that are now pending, and get a marker without files."""
    alarms: tuple[str, ...] = ()
    """What is told now, once, about expected partitions."""
    looks: Mapping[Partition, Evaluation] = field(default_factory=dict)
    """Whether each pending partition may be committed, or why not."""

    @property
    def is_silent(self) -> bool:
        """Whether nothing was found."""
        return not self.marked and not self.alarms
