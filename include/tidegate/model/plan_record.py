"""The findings and decisions of planning: the explanation of a plan (ICE-5.18)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.model.partition import Partition
from tidegate.model.time_bounds import TimeBounds
from tidegate.model.wire import SPARSE, Value


@dataclass(frozen=True)
class InstantAction(Value):
    """What was done with the source commits of one class."""

    kind: str
    """The class in the source's terms: `append`, `replace`, `overwrite`, `listing`."""
    action: str
    """`read`, `skipped`, `compared`."""
    count: int


@dataclass(frozen=True)
class PartitionEvent(Value):
    """A source commit of the window that replaced files of a source's partition as a whole."""

    instant: str
    operation: str
    """In the source's terms: `insert_overwrite`, `insert_overwrite_table`, `delete_partition`."""
    partition: str
    """The folder of the source's partition; empty for a table without partitions."""
    replaced: tuple[str, ...]
    """The ids of the file groups whose rows are gone from then on; none if it was empty before."""


@dataclass(frozen=True)
class Listed(Value):
    """How a source found the files of a window."""

    instants: tuple[InstantAction, ...] = ()
    manifests_read: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    """What was not read and why, as in "the filter ruled out files by metrics" → its number."""
    removed: tuple[TimeBounds, ...] | None = field(default=None, metadata={SPARSE: True})
    """Event times of rows of earlier windows that skipped commits removed; unknown ones may be of
    any time. None: there are none."""
    brought: tuple[Partition, ...] | None = field(default=None, metadata={SPARSE: True})
    """The partitions of rows that skipped commits added. None: there are none."""
    events: tuple[PartitionEvent, ...] | None = field(default=None, metadata={SPARSE: True})
    """In the order of the commits (HUDI-R10); None: there are none."""
    unmerged: bool | None = field(default=None, metadata={SPARSE: True})
    """Whether rows are counted in files of which only some are returned; None: no."""


@dataclass(frozen=True)
class DeleteTotal(Value):
    """The delete files of one kind that a plan applies, each counted once."""

    files: int
    bytes: int
    rows: int


@dataclass(frozen=True)
class LimitCut(Value):
    """A run limit that ended a window before the source's head (ICE-5.11)."""

    limit: str
    """The key of `source.limits`."""
    left: int
    """The number of instants left to the next runs."""


@dataclass(frozen=True)
class SplitTotal(Value):
    """The splits whose weight is decided by one term (ICE-5.4)."""

    splits: int
    weight: int
    heaviest: int


@dataclass(frozen=True)
class PlanRecord(Value):
    """Why a plan is as it is, for `plan.json` and the run's report."""

    checkpoint: str
    """The state of the checkpoint in the source's history, and the policy applied, if any."""
    listed: Listed
    deletes: Mapping[str, DeleteTotal]
    """Kind of delete → its totals."""
    target_size: int
    """The target weight of a split, after table properties and parallelism (ICE-5.6, 5.7)."""
    terms: Mapping[str, SplitTotal]
    """Deciding term → splits."""
    footers_read: int
    event_times: TimeBounds | None
    """Over all files; None: not asked for, or not known of every one."""
    files_without_bounds: int
    limit: LimitCut | None = None
