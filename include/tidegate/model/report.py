"""What `status` and `explain` say of a pipeline and of one partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.model.ledger_rows import (
    PartitionState,
    PipelineState,
    PublicationEntry,
    RevisionEntry,
    WindowState,
)
from tidegate.model.message import Contribution
from tidegate.model.watermark import Evaluation
from tidegate.model.wire import Value


@dataclass(frozen=True)
class CheckpointState(Value):
    """How a pipeline's checkpoint stands to the source's head."""

    state: str
    """In words: `in lineage`, `off lineage`, `expired`, …; `unknown` if the source did not tell."""
    detail: str
    """One sentence: what that means, and what the next load does."""
    checkpoint: str | None = None
    head: str | None = None
    common_ancestor: str | None = None
    oldest_kept: str | None = None
    sequence_gap: int | None = None
    """Between the checkpoint and the oldest kept instant; 1: nothing lies between (ICE-2.20)."""
    ways_out: tuple[str, ...] = ()
    """Settings that go on from here; none needed where this is empty."""


@dataclass(frozen=True)
class PartitionReport(Value):
    """One line of `status`."""

    state: PartitionState
    name: str
    """`committed`, `pending`, `held` or `late`: pending with a revision that stands."""
    why: Evaluation | None
    rows_pending: int
    """Rows of contributions that no revision holds yet."""
    windows: tuple[int, ...]
    """Windows whose rows are in the standing revision."""
    proposed_digest: str | None = None
    """What a decision has to name: the publication that waits for gate, person or commit."""


@dataclass(frozen=True)
class PipelineReport(Value):
    """What `tidegate status` says."""

    pipeline: PipelineState
    partitions: tuple[PartitionReport, ...]
    windows: tuple[WindowState, ...]
    notes: tuple[str, ...]
    """What a person should know: a changed pipeline file, an open window."""


@dataclass(frozen=True)
class PartitionExplanation(Value):
    """What `tidegate explain` says of one partition (PC-C07)."""

    report: PartitionReport
    evaluation: Evaluation | None
    """A fresh look; None when nothing is pending or a person has to decide."""
    contributions: tuple[Contribution, ...]
    proposed: PublicationEntry | None
    revisions: tuple[RevisionEntry, ...]
    watermark: Mapping[str, Any] | None
    """How the watermark came about (PC-W10)."""
    quarantined: tuple[str, ...]
    """Directories with rows that a rule put aside in this partition's windows."""
