"""The results of tasks and windows: part files, commit messages, contributions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, ClassVar, Self

from tidegate.model.aside import Aside
from tidegate.model.bag_sum import BagSum
from tidegate.model.exchange import SpreadFile
from tidegate.model.ignored import Ignored
from tidegate.model.partition import Partition
from tidegate.model.plan import WindowKind
from tidegate.model.settling import SettleCounts
from tidegate.model.time_bounds import TimeBounds
from tidegate.model.upload import Upload
from tidegate.model.wire import SPARSE, Value

_COUNTED_BY_NAME = ("seconds", "left_out", "rule_hits")
"""Fields of a summary that count by name."""
_COUNTED_APART = ("brought", "damaged", "removed_in", "rows_aside", "rows_erased")


@dataclass(frozen=True)
class EventTimes(Value):
    """Bounds of the event times that count, and counts of the others (PC-W02, design §7)."""

    smallest: datetime | None = None
    largest: datetime | None = None
    missing: int = 0
    """Rows whose event time is NULL."""
    future: int = 0
    """Rows beyond the clock plus tolerance; they do not move `largest`."""

    def merged(self, other: EventTimes) -> EventTimes:
        """Join the bounds of two sets of rows."""
        lows = [moment for moment in (self.smallest, other.smallest) if moment is not None]
        highs = [moment for moment in (self.largest, other.largest) if moment is not None]
        return EventTimes(
            min(lows, default=None),
            max(highs, default=None),
            self.missing + other.missing,
            self.future + other.future,
        )


@dataclass(frozen=True)
class PartFile(Value):
    """One closed part file in staging (PC-F12)."""

    partition: Partition
    name: str
    """Final file name, `part-<plan digest>-<sub-split>-<counter><ext>` (design §4)."""
    staged: str
    """Its path, relative to the plan's directory."""
    length: int
    sha256: str
    rows: int
    event_times: EventTimes
    upload: Upload | None = field(default=None, metadata={SPARSE: True})
    """What the commit completes (PC-F36); nothing is at `staged` then. None: it is staged."""


@dataclass(frozen=True)
class HeldPartition(Value):
    """A partition with rows that failed a rule whose effect is `hold`."""

    partition: Partition
    rules: tuple[str, ...]
    """The rules that they failed, sorted."""
    rows: Mapping[str, int] | None = field(default=None, metadata={SPARSE: True})
    """Rule → rows of the partition that failed it; None in messages of versions without it."""


@dataclass(frozen=True)
class Staged(Value):
    """Where the rows of a sub-split were written; every file is closed and synced."""

    parts: tuple[PartFile, ...] = ()
    quarantined: tuple[PartFile, ...] = ()
    """Rows that a rule put aside, one file per rule; their `partition` is empty."""
    rows_read: int = 0
    rows_kept: int = 0
    event_times: EventTimes = field(default_factory=EventTimes)
    rule_hits: Mapping[str, int] = field(default_factory=dict)
    """Rule name → rows that failed it."""
    held: tuple[HeldPartition, ...] = ()
    """Rows by path."""
    rows_erased: int | None = field(default=None, metadata={SPARSE: True})
    """Rows that were left out because they are erased; None: there were none. Not among those read.
    """
    emptied: tuple[Partition, ...] | None = field(default=None, metadata={SPARSE: True})
    """Where they would have been, if the window's rows replace those of their partitions; None:
    they do not."""


@dataclass(frozen=True)
class ReadNotes(Value):
    """What was found in reading a sub-split, besides its rows."""

    settled: SettleCounts = field(default_factory=SettleCounts)
    """Counts of changed rows that were settled."""
    balance: Mapping[str, BagSum] = field(default_factory=dict)
    """Commit → the sum of its changes and states that were read here, if changes are checked."""
    ignored: Ignored | None = field(default=None, metadata={SPARSE: True})
    """Deletes that matched nothing; None if there were none."""


@dataclass(frozen=True)
class CommitMessage(Value):
    """The result of one finished sub-split; the first message written wins."""

    FORMAT: ClassVar[int] = 2

    sub_split: str
    attempt: str
    """Name of the attempt directory that has the files."""
    staged: Staged = field(default_factory=Staged)
    """Nothing of rows that were handed on, or were only read for a check."""
    noted: ReadNotes = field(default_factory=ReadNotes)
    spread: SpreadFile | None = None
    """Rows for other sub-splits of the plan, which stage them.

    Those to assemble are counted as read here, and as kept there.
    """

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Build the value from the result of `to_json`, also of earlier versions.

        Messages were not grouped then. Sealed windows need them as long as their contributions
        count.
        """
        return super().from_json(_grouped(raw) if raw.get("format") == 1 else raw)


def _grouped(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Group the fields of a message of the first format."""
    left = dict(raw)
    partitions, rules = left.pop("held", ()), left.pop("held_rules", None)
    held = zip(partitions, rules or [()] * len(partitions), strict=True)
    groups = {
        name: {item.name: left.pop(item.name) for item in fields(group) if item.name in left}
        for name, group in (("staged", Staged), ("noted", ReadNotes))
    }
    groups["staged"]["held"] = [{"partition": item, "rules": named} for item, named in held]
    return {**left, **groups, "format": CommitMessage.FORMAT}


@dataclass(frozen=True)
class Contribution(Value):
    """What one window adds to one target partition; replaying the window replaces it."""

    window: int
    partition: Partition
    plan_digest: str
    messages: tuple[str, ...]
    """Sub-splits whose messages name this partition's parts, in plan order.

    Empty: nothing remains.
    """
    rows: int
    bytes: int
    event_times: EventTimes
    late: bool = False
    """The partition had a revision when this was first announced; never recomputed."""
    held_rule: str | None = None
    """The row rules with effect `hold` that rows of this partition failed."""
    held_rows: Mapping[str, int] | None = field(default=None, metadata={SPARSE: True})
    """Rule of `held_rule` → rows that failed it; None if nothing is held, or nothing counted."""
    kind: WindowKind = WindowKind.LOAD
    """Kind of the window; a rebuild resets what came before (design §2, content)."""
    overwrites: bool = field(default=False, metadata={SPARSE: True})
    """Whether its rows replace the partition's (PC-F30)."""
    as_of: datetime | None = field(default=None, metadata={SPARSE: True})
    """The time of the window's end, of history in a target where the order of windows matters."""

    @property
    def replaces(self) -> bool:
        """Whether contributions before it in content order no longer count."""
        return self.overwrites or self.kind.replaces

    aside: Aside | None = field(default=None, metadata={SPARSE: True})
    """Why it does not count; None: it does."""
    counts_as: str | None = field(default=None, metadata={SPARSE: True})
    """The earlier plan of the window that counts in its stead, after an undo."""
    announced_at: datetime | None = field(default=None, metadata={SPARSE: True})
    """When it was announced; None until then."""

    @property
    def counted_digest(self) -> str | None:
        """The digest of the plan whose rows count; None: it is set aside."""
        return self.plan_digest if self.aside is None else self.counts_as


@dataclass(frozen=True)
class RunSummary(Value):
    """The counts of one load of one window, for the ledger and the task log."""

    rows_read: int = 0
    rows_kept: int = 0
    rows_quarantined: int = 0
    rows_late: int = 0
    """Rows that came after their partition was published; those of a rebuild are no news."""
    rows_aside: Mapping[str, int] | None = field(default=None, metadata={SPARSE: True})
    """Why late rows do not count → their number; None: they do, or there are none."""
    rows_carried_over: int = 0
    """Changes that a commit only copied, left out (ICE-3.14)."""
    rows_unpaired: int = 0
    """Changes of keys that have several changes in one commit (ICE-3.15)."""
    rows_future: int = 0
    rows_elsewhere: int = 0
    """Rows that a rebuild read and left out, because they are of other partitions."""
    rows_erased: int | None = field(default=None, metadata={SPARSE: True})
    """Rows that were left out because they are erased; None: there were none."""
    removed: tuple[TimeBounds, ...] = ()
    """Event times of rows of earlier windows that skipped commits removed, as in the plan."""
    removed_in: str | None = field(default=None, metadata={SPARSE: True})
    """The column of these event times; None: not kept."""
    brought: tuple[Partition, ...] | None = field(default=None, metadata={SPARSE: True})
    """The partitions of rows that skipped commits added; None: there are none."""
    rule_hits: Mapping[str, int] = field(default_factory=dict)
    """Row rule → rows that failed it; `hold` and `warn` only judge the rows that are kept."""
    deletes_ignored: int = 0
    """Deleted positions past the end of their file, or rows that name no position (ICE-4.10)."""
    damaged: Mapping[str, int] = field(default_factory=dict)
    """Log file → damaged spans that were skipped (HUDI-L2)."""
    bytes_written: int = 0
    files_written: int = 0
    sub_splits: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Stage → seconds."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """What planning left out and why, as in the plan's record → its number."""

    def merged(self, other: RunSummary) -> RunSummary:
        """Add the counts of another window."""
        counts = {
            item.name: getattr(self, item.name) + getattr(other, item.name)
            for item in fields(self)
            if item.name not in {*_COUNTED_BY_NAME, *_COUNTED_APART}
        }
        named: dict[str, Any] = {
            name: sum_by_name((getattr(self, name), getattr(other, name)))
            for name in _COUNTED_BY_NAME
        }
        brought = (*(self.brought or ()), *(other.brought or ()))
        # Windows that read the same log meet the same spans.
        damaged = {**self.damaged, **other.damaged}
        aside = sum_by_name((self.rows_aside or {}, other.rows_aside or {}))
        return RunSummary(
            **counts,
            **named,
            brought=brought or None,
            damaged=damaged,
            rows_aside=aside or None,
            rows_erased=(self.rows_erased or 0) + (other.rows_erased or 0) or None,
        )


def sum_by_name(counted: Iterable[Mapping[str, float]]) -> dict[str, Any]:
    """Add up what was counted by name."""
    found: Counter[str] = Counter()
    for each in counted:
        found.update(each)
    return dict(found)
