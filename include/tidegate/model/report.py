"""The reports of `status` and `explain` on a pipeline and a partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tidegate.model.ledger_rows import (
    PartitionState,
    PipelineState,
    PublicationEntry,
    RevisionEntry,
    WindowState,
)
from tidegate.model.message import Contribution
from tidegate.model.publication import Verdict
from tidegate.model.watermark import Evaluation
from tidegate.model.wire import SPARSE, Value


@dataclass(frozen=True)
class CheckpointState(Value):
    """How a pipeline's checkpoint relates to the source's head."""

    state: str
    """In words: `in lineage`, `off lineage`, `expired`, …; `unknown` if the source failed."""
    detail: str
    """One sentence on what this means, and what the next load does."""
    checkpoint: str | None = None
    head: str | None = None
    common_ancestor: str | None = None
    oldest_kept: str | None = None
    sequence_gap: int | None = None
    """Distance from the checkpoint to the oldest kept instant; 1: none is missing (ICE-2.20)."""
    kept: int | None = field(default=None, metadata={SPARSE: True})
    """The number of source commits up to the checkpoint whose files are still there, itself
    included; None: none was removed, or not known (HUDI-W14)."""
    ways_out: tuple[str, ...] = ()
    """Settings that lead on from here; empty if none are needed."""


@dataclass(frozen=True)
class PartitionReport(Value):
    """One line of `status`."""

    state: PartitionState
    name: str
    """`committed`, `pending`, `held`, `late` or `changed`; see `state_name`."""
    why: Evaluation | None
    rows_pending: int
    """Rows of contributions that no revision has yet."""
    windows: tuple[int, ...]
    """Windows whose rows are in the current revision."""
    proposed_digest: str | None = None
    """The publication that waits for gate, person or commit; a decision has to name it."""
    passed_over: tuple[int, ...] = ()
    """Windows that passed over commits that may have changed its rows."""
    rows_aside: Mapping[str, int] | None = field(default=None, metadata={SPARSE: True})
    """Why rows do not count, see `Aside` → their number; None: all do."""
    commit_begun: bool = field(default=False, metadata={SPARSE: True})
    """Whether a commit has begun and not ended; its marker may be missing until then."""


@dataclass(frozen=True)
class PipelineReport(Value):
    """The report of `tidegate status`."""

    pipeline: PipelineState
    partitions: tuple[PartitionReport, ...]
    windows: tuple[WindowState, ...]
    notes: tuple[str, ...]
    """Notes for a person: a changed pipeline file, an open window."""


@dataclass(frozen=True)
class PipelineOverview(Value):
    """One line of `tidegate status` without a pipeline."""

    pipeline: PipelineState
    partitions: Mapping[str, int]
    """State, see `PartitionState.name` → number of partitions."""
    open_window: int | None
    """The sequence of the open window; None if there is none."""
    last_load: datetime | None
    """When the newest window was sealed."""


@dataclass(frozen=True)
class PartitionExplanation(Value):
    """The report of `tidegate explain` on one partition (PC-C07)."""

    report: PartitionReport
    evaluation: Evaluation | None
    """A fresh evaluation; None if nothing is pending or a person has to decide."""
    contributions: tuple[Contribution, ...]
    proposed: PublicationEntry | None
    revisions: tuple[RevisionEntry, ...]
    watermark: Mapping[str, Any] | None
    """How the watermark was computed (PC-W10)."""
    quarantined: tuple[str, ...]
    """Directories with rows of this partition's windows that a rule quarantined."""
    quarantined_by: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Such a directory → rule → rows of the window that failed it, of any partition."""
    load_failed: str | None = None
    """When and why the pipeline's last load failed; None if it did not."""
    verdict: Verdict | None = field(default=None, metadata={SPARSE: True})
    """Of the newest revision, as far as the ledger has it."""
