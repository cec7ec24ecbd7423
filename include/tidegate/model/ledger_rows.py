"""What the ledger tells of pipelines, windows, partitions and revisions: read-only views."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tidegate.model.instant import Instant
from tidegate.model.message import RunSummary
from tidegate.model.partition import Partition
from tidegate.model.plan import Window
from tidegate.model.publication import (
    Approval,
    Outcome,
    Override,
    Publication,
    PublicationState,
    Verdict,
)
from tidegate.model.watermark import Evaluation, WatermarkStep
from tidegate.model.wire import Value


@dataclass(frozen=True)
class PipelineState(Value):
    """How far a pipeline has come."""

    name: str
    ledger_id: str
    target: str
    source_identity: str | None
    """Table uuid or root that the first window was taken from."""
    started: bool
    """Whether it is fixed where the first window begins."""
    first_start: Instant | None
    """Where the first window began; None: at the beginning."""
    checkpoint: Instant | None
    watermark: datetime | None
    watermark_step: WatermarkStep | None
    next_sequence: int
    """Of the next window."""
    next_number: int
    """In the order of what was recorded; the next announce, commit or decision gets it."""
    first_fence: int
    """Below which no fence of this ledger lies; those of a ledger that was lost do."""

    @property
    def progress(self) -> str:
        """Say in words how far the windows have come."""
        checkpoint = self.checkpoint.id if self.checkpoint else "none"
        return f"checkpoint {checkpoint}, newest window {self.next_sequence - 1}"


@dataclass(frozen=True)
class WindowState(Value):
    """A window and how far it has come."""

    window: Window
    sealed: bool
    attempt: int
    owner: str | None
    """Who works on it now."""
    expires: datetime | None
    plan_digest: str | None
    """The plan whose contributions are effective; None until sealed."""
    summary: RunSummary | None
    taken_at: datetime
    sealed_at: datetime | None
    number: int
    """Of its last announce, in the order of what was recorded; 0 until sealed."""
    reserved: int = 0
    """Which was reserved last for an announce of it; 0: none by this ledger."""


@dataclass(frozen=True)
class Claim(Value):
    """A run's right to a partition, fenced."""

    owner: str
    fence: int


@dataclass(frozen=True)
class PartitionState(Value):
    """A partition and how far it has come."""

    partition: Partition
    start: datetime | None
    end: datetime | None
    first_seen: datetime | None
    revision: int
    rows: int
    """Rows of the standing revision."""
    pending: str
    """`none`, `pending` or `held`."""
    why: Evaluation | None
    owner: str | None
    """Who has claimed it."""
    expires: datetime | None
    reserved: int = 0
    """Number that was reserved last for a commit plan, verdict or decision; 0: none by this ledger.
    """

    @property
    def name(self) -> str:
        """Say in a word how it is: `committed`, `pending`, `held`, `late`, or `empty`."""
        if self.pending == "none":
            return "committed" if self.revision else "empty"
        if self.pending == "pending" and self.revision:
            return "late"
        return self.pending


@dataclass(frozen=True)
class PublicationEntry(Value):
    """A publication as the ledger knows it; `publication.content` is empty there."""

    publication: Publication
    rows: int
    verdict: Verdict | None
    approval: Approval | None
    state: PublicationState
    override: Override | None = None
    """Who published it before its trigger said so; None: the trigger did."""
    commit_plan: str | None = None
    """Path of the plan that its commit follows, relative to the work directory.

    None until it is prepared.
    """

    @property
    def is_approved(self) -> bool:
        """Whether a person let it out."""
        return self.approval is not None and self.approval.approved

    @property
    def may_be_committed(self) -> bool:
        """Whether the gate lets it through; a person's decision counts more."""
        if self.approval is not None:
            return self.approval.approved
        return self.verdict is not None and self.verdict.outcome in {Outcome.PASS, Outcome.WARN}


@dataclass(frozen=True)
class RevisionEntry(Value):
    """One committed revision: the lineage from partition to source."""

    partition: Partition
    revision: int
    digest: str
    contributions: Mapping[str, str]
    """Window sequence → plan digest."""
    rows: int
    files: int
    watermark: datetime | None
    source_range: Mapping[str, Any]
    commit_plan: str
    """Path of the commit plan relative to the work directory."""
    owner: str
    committed_at: datetime
    override: Override | None = None
    """Who published it before its trigger said so."""
