"""What one run asks for, and what its steps hand to the next."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tidegate.model.instant import DataInterval
from tidegate.model.message import RunSummary
from tidegate.model.partition import Partition
from tidegate.model.publication import Outcome
from tidegate.model.watermark import Evaluation
from tidegate.model.wire import Value


@dataclass(frozen=True)
class Run(Value):
    """One execution of a pipeline's load."""

    id: str
    owner: str
    """Who holds the window while it is open: the same for every step and retry of the run."""
    interval: DataInterval | None = None
    until: datetime | None = None
    """End of what may be taken, excluded, for a run without a data interval."""

    @property
    def end_exclusive(self) -> datetime | None:
        """The bound on instant times; None takes everything."""
        return self.interval.end if self.interval else self.until


@dataclass(frozen=True)
class Look(Value):
    """What a run would find: `changes`, `replay`, or `none`."""

    kind: str
    detail: str


@dataclass(frozen=True)
class PlannedWindow(Value):
    """A window with its plan in the work directory: what one step names to the next."""

    sequence: int
    attempt: int
    """Fence of announce (design §4)."""
    digest: str
    uri: str
    """Directory of the plan."""
    splits: int
    pending: int
    """Splits with a sub-split that has no message yet."""
    pending_bytes: int
    sealed: bool
    """This very plan was announced before: nothing is left to do."""
    taken_over: bool = False
    """Another run left it open; what this run is for comes after it."""


@dataclass(frozen=True)
class Announced(Value):
    """What the announce of one or more windows changed."""

    partitions: tuple[Partition, ...]
    windows: tuple[int, ...]
    watermark: datetime | None
    summary: RunSummary

    def joined(self, later: Announced) -> Announced:
        """Add what the same run announced afterwards."""
        return Announced(
            partitions=tuple(dict.fromkeys((*self.partitions, *later.partitions))),
            windows=(*self.windows, *later.windows),
            watermark=later.watermark,
            summary=self.summary.merged(later.summary),
        )


@dataclass(frozen=True)
class Proposal(Value):
    """The next revision of a partition, worked out and stored."""

    partition: Partition
    digest: str
    revision: int
    rows: int
    files_added: int
    files_removed: int
    lapsed: str | None = None
    """What changed against an earlier proposal that had been checked or approved."""
    stands: bool = False
    """A predecessor had begun its commit, which was finished; consumers have not been told of it.
    """


@dataclass(frozen=True)
class Committed(Value):
    """A revision that stands."""

    partition: Partition
    revision: int
    rows: int
    watermark: datetime | None
    windows: tuple[int, ...]


@dataclass(frozen=True)
class PublishOutcome(Value):
    """What a publish did with one partition."""

    partition: Partition
    state: str
    """`committed`, `held`, `pending`, `failed` or `unchanged`."""
    revision: int
    rows: int
    why: Evaluation | None = None
    gate: Outcome | None = None
    """None where nothing was checked."""
    error: str | None = None
    digest: str | None = None
    """Of the publication that is held: what a decision has to name."""
