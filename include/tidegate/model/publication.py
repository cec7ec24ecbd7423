"""Publications: the difference between a partition's revision and the next one.

With the verdict, decision and commit plan that belong to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any

from tidegate.model.message import PartFile
from tidegate.model.partition import Partition
from tidegate.model.upload import Upload
from tidegate.model.watermark import Evaluation
from tidegate.model.wire import SPARSE, Value, digest


class Outcome(Enum):
    """The outcome of the gate for a partition."""

    PASS = "pass"
    WARN = "warn"
    HOLD = "hold"
    FAIL = "fail"


@dataclass(frozen=True)
class CheckResult(Value):
    """One expectation on one proposed revision."""

    name: str
    """In words: `expect_column_values_to_not_be_null(dep_time)`."""
    severity: str
    success: bool
    observed: str
    expected: str

    @property
    def text(self) -> str:
        """The expectation and the observed value, in one line."""
        return f"{self.name}: observed {self.observed}, expected {self.expected}"


@dataclass(frozen=True)
class Verdict(Value):
    """The outcome of all checks on one partition as it would be published."""

    outcome: Outcome
    checks: tuple[CheckResult, ...]
    rows: int
    engine: str
    """`pandas`, `spark`, or `none` if no suite is configured."""
    checked_at: datetime

    @property
    def failures(self) -> tuple[CheckResult, ...]:
        """The checks that did not succeed, critical ones first."""
        failed = [check for check in self.checks if not check.success]
        return tuple(sorted(failed, key=lambda check: check.severity != "critical"))

    @property
    def critical_text(self) -> str:
        """The critical checks that did not succeed, in one line."""
        return "; ".join(check.text for check in self.failures if check.severity == "critical")


@dataclass(frozen=True)
class Approval(Value):
    """A person's decision on one content of a partition (PC-C06)."""

    approved: bool
    by: str
    at: datetime
    comment: str = ""
    erases: int | None = field(default=None, metadata={SPARSE: True})
    """The newest erasure whose rows the revision takes out of what stood; None: it is an answer."""


@dataclass(frozen=True)
class Override(Value):
    """A person's declaration that a partition is complete although its trigger does not say so.

    It overrules the trigger alone, never the gate.
    """

    by: str
    at: datetime
    comment: str
    """Why."""
    overruled: str = ""
    """The trigger's evaluation, with the values that it compared."""


@dataclass(frozen=True)
class StagedFile(Value):
    """A file that was staged for a partition's content, and where it is now."""

    name: str
    length: int
    sha256: str
    rows: int
    window: int
    plan_digest: str
    staged: str
    """The staged file: its path relative to the work directory."""
    upload: Upload | None = field(default=None, metadata={SPARSE: True})
    """What becomes the published file once it is completed; nothing was staged then, but a commit
    that was taken back leaves a staged file all the same."""


@dataclass(frozen=True)
class PublishedFile(StagedFile):
    """A file of a partition's content, published or staged."""

    merged: tuple[int, ...] = field(default=(), metadata={SPARSE: True})
    """The windows whose changes were merged into it; empty: it has the rows of `window`."""
    made_of: tuple[StagedFile, ...] = field(default=(), metadata={SPARSE: True})
    """The files that were joined to it, where they are now; empty: it is as it was staged."""
    joins: tuple[str, ...] = field(default=(), metadata={SPARSE: True})
    """Names of the files of the partition that it stands for, if their rows are all it has."""
    is_part: bool = field(default=False, metadata={SPARSE: True})
    """Whether other files have some of the rows of what was joined to it."""

    @classmethod
    def of(cls, part: PartFile, window: int, plan_digest: str, staged: str) -> PublishedFile:
        """Describe a part file as one of a partition's content.

        Args:
            part: as it was written.
            window: that it has rows of; of several, the newest.
            plan_digest: of the plan or the unit that it was written by.
            staged: its path relative to the work directory.
        """
        told = (part.name, part.length, part.sha256, part.rows, window, plan_digest, staged)
        return cls(*told, part.upload)

    @property
    def windows(self) -> tuple[int, ...]:
        """The windows that it has rows of."""
        joined = tuple(dict.fromkeys(part.window for part in self.made_of))
        return joined or self.merged or (self.window,)

    @property
    def joined(self) -> tuple[str, ...]:
        """Names of the files whose rows it has, all of them, as far back as known.

        Empty if none were joined to it, or if they became several files together.
        """
        if self.is_part:
            return ()
        return tuple(part.name for part in self.made_of) or self.joins


class PublicationState(Enum):
    """The state of a publication; each step is a compare-and-set (design §4)."""

    PROPOSED = "proposed"
    PREPARED = "prepared"
    MOVED = "moved"
    MARKED = "marked"
    RECORDED = "recorded"
    DROPPED = "dropped"


@dataclass(frozen=True)
class Undo(Value):
    """A way back to the content of an earlier revision (design §4a)."""

    restores: int
    """The revision whose content it is."""
    set_aside: Mapping[str, str]
    """Window sequence → plan digest of each contribution that stops to count."""
    counted_as: Mapping[str, str]
    """Window sequence → the earlier plan that counts in its stead, where the window was replayed.
    """


@dataclass(frozen=True)
class Publication(Value):
    """The step from the base revision to the next: files added, files removed, and all files."""

    partition: Partition
    base_revision: int
    adds: tuple[PublishedFile, ...]
    removes: tuple[PublishedFile, ...]
    content: tuple[PublishedFile, ...]
    """All files of the partition afterwards, in window order, then by name."""
    contributions: Mapping[str, str]
    """Window sequence → plan digest of every effective contribution in `content`."""
    undone: Undo | None = field(default=None, metadata={SPARSE: True})
    """The way back to an earlier revision; None: it leads forward."""

    @property
    def digest(self) -> str:
        """16 hexadecimal digits over the base revision, adds, removes.

        Approvals are bound to it.
        """
        return digest(
            {
                "base": self.base_revision,
                "adds": [[item.name, item.length, item.sha256] for item in self.adds],
                "removes": [item.name for item in self.removes],
                "contributions": dict(self.contributions),
                **({} if self.undone is None else {"restores": self.undone.restores}),
            }
        )

    @property
    def revision(self) -> int:
        """The number of the revision that this becomes."""
        return self.base_revision + 1

    @property
    def rows(self) -> int:
        """Rows of the partition afterwards."""
        return sum(item.rows for item in self.content)

    @property
    def staying(self) -> tuple[PublishedFile, ...]:
        """The files of the base revision that are in this one, too."""
        coming = {file.name for file in self.adds}
        return tuple(file for file in self.content if file.name not in coming)

    @property
    def is_empty(self) -> bool:
        """Whether the content would not change; nothing is written then (PC-A08)."""
        return not self.adds and not self.removes

    @property
    def is_rewrite(self) -> bool:
        """Whether only the files change, and no row does (PC-K06)."""
        joined = {name for file in self.adds for name in file.joins}
        only_joins = all(file.joins for file in self.adds)
        return bool(self.adds) and only_joins and joined == {it.name for it in self.removes}


@dataclass(frozen=True)
class AssembledUnit(Value):
    """The files that were assembled for one revision of a partition (design §4a)."""

    kept: tuple[str, ...]
    """Names of files of the base revision that stay as they are."""
    parts: tuple[PartFile, ...]
    """Staged paths are relative to the directory of the unit."""


@dataclass(frozen=True)
class PolicySpec(Value):
    """A commit policy as named in the pipeline file."""

    name: str
    """`success-file`, or `custom`."""
    reference: str | None = None
    """`module:Class` of a custom policy."""
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True)
class CommitPlan(Value):
    """The plan of one commit: written once before anything changes, then carried out (PC-F15)."""

    pipeline: str
    publication: Publication
    policies: tuple[PolicySpec, ...]
    marker_name: str
    marker: str
    """The marker's text, byte for byte."""
    watermark: datetime | None
    source_range: Mapping[str, Any]
    """Window sequence → the source instants after which and up to which it read."""
    verdict: Verdict
    approval: Approval | None
    owner: str
    prepared_at: datetime
    override: Override | None = None
    number: int = 0
    """The number that orders it among all records; 0: written before there were numbers."""
    former_marker: str | None = field(default=None, metadata={SPARSE: True})
    """Name of the current marker; None: the same name, or there is none."""
    watermark_basis: str | None = field(default=None, metadata={SPARSE: True})
    """What the watermark is measured in; None: not known, or nothing."""


@dataclass(frozen=True)
class GateRecord(Value):
    """The verdict on one proposed revision, with everything that was checked.

    It is stored in `….gate.json`.
    """

    publication: Publication
    verdict: Verdict
    held: Evaluation | None
    """Why the partition waits for a person; None if it does not."""
    report: Mapping[str, Any]
    override: Override | None = None
    """Who published it before its trigger said so."""
    number: int = 0
    """The number that orders it among all records; 0: written before there were numbers."""


@dataclass(frozen=True)
class DecisionRecord(Value):
    """A decision on one held content, or on rows that are set aside.

    It is stored in `….decision.json`.
    """

    partition: Partition
    publication: str
    """The digest that the decision is bound to (PC-C06); empty if it is about no publication."""
    approval: Approval | None
    """None: the partition was reopened, or its rows were released."""
    why: Evaluation
    number: int = 0
    """The number that orders it among all records; 0: written before there were numbers."""
    set_aside: tuple[int, ...] | None = field(default=None, metadata={SPARSE: True})
    """Windows whose late rows do not count from now on."""
    released: tuple[int, ...] | None = field(default=None, metadata={SPARSE: True})
    """Windows whose rows were set aside, and count again."""
