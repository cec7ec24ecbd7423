"""What one run requests, and what its steps return."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from tidegate.model.instant import DataInterval
from tidegate.model.message import RunSummary
from tidegate.model.partition import Partition
from tidegate.model.publication import Approval, Outcome
from tidegate.model.watermark import Evaluation
from tidegate.model.wire import SPARSE, Value


@dataclass(frozen=True)
class Run(Value):
    """One execution of a pipeline's load."""

    id: str
    owner: str
    """The holder of the window while it is open: the same for every step and retry of the run."""
    interval: DataInterval | None = None
    until: datetime | None = None
    """The exclusive end of what may be taken, for a run without a data interval."""

    @property
    def end_exclusive(self) -> datetime | None:
        """The exclusive bound of instant times; None: everything is taken."""
        return self.interval.end if self.interval else self.until


@dataclass(frozen=True)
class Look(Value):
    """What a run would find: `changes`, `replay` or `none`."""

    kind: str
    detail: str


@dataclass(frozen=True)
class PlannedWindow(Value):
    """A window with its plan in the work directory, as passed from step to step."""

    sequence: int
    attempt: int
    """The fence of announce (design §4)."""
    digest: str
    uri: str
    """Directory of the plan."""
    splits: int
    pending: int
    """Splits with a sub-split that has no message yet."""
    pending_bytes: int
    sealed: bool
    """This plan was announced before: nothing is left to do."""
    taken_over: bool = False
    """Another run left it open; this run's own window follows."""


@dataclass(frozen=True)
class Announced(Value):
    """The changes of announcing one or more windows."""

    partitions: tuple[Partition, ...]
    windows: tuple[int, ...]
    watermark: datetime | None
    summary: RunSummary
    expected: tuple[Partition, ...] | None = field(default=None, metadata={SPARSE: True})
    """Partitions without rows that a calendar expects, and that are published without files."""

    def joined(self, later: Announced) -> Announced:
        """Add what the same run announced afterwards."""
        return Announced(
            partitions=tuple(dict.fromkeys((*self.partitions, *later.partitions))),
            windows=(*self.windows, *later.windows),
            watermark=later.watermark,
            summary=self.summary.merged(later.summary),
            expected=(*(self.expected or ()), *(later.expected or ())) or None,
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
    """The difference from an earlier proposal that had been checked or approved."""
    stands: bool = False
    """A predecessor had begun its commit, which was now finished; no event has been emitted for it.
    """


@dataclass(frozen=True)
class Committed(Value):
    """A committed revision."""

    partition: Partition
    revision: int
    rows: int
    watermark: datetime | None
    windows: tuple[int, ...]


@dataclass(frozen=True)
class PublishOutcome(Value):
    """The result of a publish for one partition."""

    partition: Partition
    state: str
    """`committed`, `held`, `pending`, `failed` or `unchanged`."""
    revision: int
    rows: int
    why: Evaluation | None = None
    gate: Outcome | None = None
    """None if nothing was checked."""
    error: str | None = None
    digest: str | None = None
    """The digest of the held publication, which a decision has to name."""
    approval: Approval | None = field(default=None, metadata={SPARSE: True})
    """Who approved the revision that is committed, or decided on the publication that is held.

    None if nobody did.
    """
    way_out: str | None = field(default=None, metadata={SPARSE: True})
    """The command that removes what it failed by, if that is one command."""
    rows_pending: int | None = field(default=None, metadata={SPARSE: True})
    """Rows that wait for the next revision; None if nothing waits."""
