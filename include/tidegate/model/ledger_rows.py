"""The ledger's view of pipelines, windows, partitions and revisions; read-only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tidegate.model.expected import Alarm
from tidegate.model.instant import Instant
from tidegate.model.message import Contribution, RunSummary
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
from tidegate.model.wire import SPARSE, Value


@dataclass(frozen=True)
class PipelineState(Value):
    """The progress of a pipeline."""

    name: str
    ledger_id: str
    target: str
    source_identity: str | None
    """The table uuid or root that the first window was taken from."""
    started: bool
    """Whether the start of the first window is fixed."""
    first_start: Instant | None
    """Where the first window began; None: at the beginning."""
    checkpoint: Instant | None
    watermark: datetime | None
    watermark_step: WatermarkStep | None
    next_sequence: int
    """The sequence number of the next window."""
    next_number: int
    """The number of the next announce, commit or decision; orders the records."""
    first_fence: int
    """A lower bound of this ledger's fences, above all fences of a lost predecessor."""

    @property
    def progress(self) -> str:
        """Return the progress of the windows in words."""
        checkpoint = self.checkpoint.id if self.checkpoint else "none"
        return f"checkpoint {checkpoint}, newest window {self.next_sequence - 1}"

    def watermark_in(self, basis: str | None) -> datetime | None:
        """Return the watermark, None if it is measured in something else."""
        step = self.watermark_step
        return self.watermark if step is None or step.counts_for(basis) else None


@dataclass(frozen=True)
class WindowState(Value):
    """A window and its state."""

    window: Window
    sealed: bool
    attempt: int
    owner: str | None
    """The holder; None if nobody works on it."""
    expires: datetime | None
    plan_digest: str | None
    """The plan with the effective contributions; None until the window is sealed."""
    summary: RunSummary | None
    taken_at: datetime
    sealed_at: datetime | None
    number: int
    """The number of its last announce; 0 until it is sealed."""
    reserved: int = 0
    """The number last reserved for an announce of it; 0: none by this ledger."""


@dataclass(frozen=True)
class Claim(Value):
    """A run's right to a partition, fenced."""

    owner: str
    fence: int


@dataclass(frozen=True)
class PartitionState(Value):
    """A partition and its state."""

    partition: Partition
    start: datetime | None
    end: datetime | None
    first_seen: datetime | None
    revision: int
    rows: int
    """Rows of the current revision."""
    pending: str
    """`none`, `pending` or `held`."""
    why: Evaluation | None
    owner: str | None
    """The holder of the claim; None if nobody has claimed it."""
    expires: datetime | None
    reserved: int = 0
    """The number last reserved for a commit plan, verdict or decision; 0: none by this ledger.
    """
    alarm: Alarm | None = field(default=None, metadata={SPARSE: True})
    """What was told last about it, if it is expected by a calendar."""

    @property
    def name(self) -> str:
        """Its state in a word, see `state_name`."""
        return state_name(self.pending, self.revision, is_missing=self.alarm is not None)

    @property
    def standing_alarm(self) -> Alarm | None:
        """The alarm that was raised since its revision; None if there is none, or it was mended."""
        alarm = self.alarm
        is_mended = self.pending == "none" and self.revision > 0
        return None if alarm is None or is_mended or alarm.revision != self.revision else alarm


def state_name(
    pending: str, revision: int, *, is_late: bool = True, is_missing: bool = False
) -> str:
    """Return the state of a partition in a word.

    It is `committed`, `pending`, `held`, `empty`, `missing`, `late` or `changed`.

    Args:
        pending: see `PartitionState`.
        revision: its number; 0: it was never published.
        is_late: whether a window waits that its revision does not have, so that it is `late`; else
            what it has was replayed or rebuilt, and it is `changed`.
        is_missing: whether a calendar expected it, and an alarm was raised.
    """
    if pending == "none":
        return "committed" if revision else "missing" if is_missing else "empty"
    if pending == "pending" and revision:
        return "late" if is_late else "changed"
    return pending


@dataclass(frozen=True)
class PublicationEntry(Value):
    """A publication as the ledger knows it; `publication.content` is empty there."""

    publication: Publication
    rows: int
    verdict: Verdict | None
    approval: Approval | None
    state: PublicationState
    override: Override | None = None
    """Who published it before its trigger allowed it; None if the trigger did."""
    commit_plan: str | None = None
    """Path of its commit plan, relative to the work directory.

    None until it is prepared.
    """

    @property
    def is_approved(self) -> bool:
        """Whether a person approved it."""
        return self.approval is not None and self.approval.approved

    @property
    def may_be_committed(self) -> bool:
        """Whether it passed its gate; a person's decision overrules the gate."""
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
    approval: Approval | None = field(default=None, metadata={SPARSE: True})
    """Who approved it although its gate held it; stored with the publication."""

    def event(self, pipeline: str, rows_before: int) -> dict[str, Any]:
        """Return what consumers of the published asset are told (AF-3.12, PC-L01).

        Args:
            pipeline: its name.
            rows_before: rows of the revision before; 0 if there is none.
        """
        return {
            "pipeline": pipeline,
            "revision": self.revision,
            "rows": self.rows,
            "rows_added": self.rows - rows_before,
            "watermark": self.watermark.isoformat() if self.watermark else None,
            "windows": sorted(int(window) for window in self.contributions),
            "committed_at": self.committed_at.isoformat(),
        }

    def is_told_by(self, key: object, extra: Mapping[str, Any] | None) -> bool:
        """Return whether an event of the published asset tells of this revision.

        A revision is known by the time of its commit: a pipeline that begins anew counts from 1
        again.
        """
        told = (extra or {}).get("committed_at")
        return key == self.partition.key and told == self.committed_at.isoformat()


@dataclass(frozen=True)
class KnownPartition(Value):
    """All that the ledger knows of a partition."""

    state: PartitionState
    contributions: tuple[Contribution, ...]
    """What each window brought, by window; also what is set aside, or was reset since."""
    newest: RevisionEntry | None
    """The current revision."""
    begun: PublicationEntry | None
    """The publication whose commit has begun but not ended."""
    proposed: PublicationEntry | None
    """The publication that waits for gate, approval or commit."""
    approved: PublicationEntry | None
    """The proposed one, if a person approved it and it can still be committed as shown."""
