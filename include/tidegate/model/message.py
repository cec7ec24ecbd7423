"""What tasks and windows hand over: part files, commit messages, contributions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime

from tidegate.model.bag_sum import BagSum
from tidegate.model.exchange import SpreadFile
from tidegate.model.ignored_deletes import IgnoredDeletes
from tidegate.model.partition import Partition
from tidegate.model.plan import WindowKind
from tidegate.model.settling import SettleCounts
from tidegate.model.wire import SPARSE, Value


@dataclass(frozen=True)
class EventTimes(Value):
    """Bounds of the event times that count, and how many did not (PC-W02, design §7)."""

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
    """Where it stands, relative to the plan's directory."""
    length: int
    sha256: str
    rows: int
    event_times: EventTimes


@dataclass(frozen=True)
class CommitMessage(Value):
    """What one finished sub-split staged; the first one written wins."""

    sub_split: str
    attempt: str
    """Name of the attempt directory that the parts stand in."""
    parts: tuple[PartFile, ...]
    quarantined: tuple[PartFile, ...]
    """Rows that a rule put aside, one file per rule; their `partition` is empty."""
    rows_read: int
    rows_kept: int
    event_times: EventTimes
    rule_hits: Mapping[str, int] = field(default_factory=dict)
    """Rule name → rows that failed it."""
    held: tuple[Partition, ...] = ()
    """Partitions with rows that failed a rule whose effect is `hold`."""
    held_rules: tuple[tuple[str, ...], ...] | None = field(default=None, metadata={SPARSE: True})
    """The rules that rows of each of `held` failed; None: nothing is held, or it was written before
    they were told apart."""
    settled: SettleCounts = field(default_factory=SettleCounts)
    """What became of changed rows that are not among those read."""
    spread: SpreadFile | None = None
    """Rows for other sub-splits of the plan, which count them; there are no parts then."""
    balance: Mapping[str, BagSum] = field(default_factory=dict)
    """Commit → what its changes and states read here sum up to, where that is checked."""
    ignored: IgnoredDeletes | None = field(default=None, metadata={SPARSE: True})
    """Deletes that hit nothing; None: there were none."""


@dataclass(frozen=True)
class Contribution(Value):
    """What one window adds to one target partition; doing the window again replaces it."""

    window: int
    partition: Partition
    plan_digest: str
    messages: tuple[str, ...]
    """Sub-splits whose messages hold this partition's parts, in plan order.

    Empty: nothing remains.
    """
    rows: int
    bytes: int
    event_times: EventTimes
    late: bool = False
    """The partition had a revision when this was first announced; never recomputed."""
    held_rule: str | None = None
    """The row rules with effect `hold` that rows of this partition failed."""
    kind: WindowKind = WindowKind.LOAD
    """Kind of the window; a rebuild resets what came before (design §2, content)."""


@dataclass(frozen=True)
class RunSummary(Value):
    """What one load of one window did; stands in the ledger and in the task log."""

    rows_read: int = 0
    rows_kept: int = 0
    rows_quarantined: int = 0
    rows_late: int = 0
    rows_carried_over: int = 0
    """Changes that a commit only copied, left out (ICE-3.14)."""
    rows_unpaired: int = 0
    """Changes of keys that changed more than once in a commit (ICE-3.15)."""
    rows_future: int = 0
    deletes_ignored: int = 0
    """Deleted positions past the end of their file, or rows that name no position (ICE-4.10)."""
    bytes_written: int = 0
    files_written: int = 0
    sub_splits: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Stage → seconds."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """What planning left out and why, as in the plan's record → how often."""

    def merged(self, other: RunSummary) -> RunSummary:
        """Add what another window did."""
        seconds = Counter(self.seconds)
        seconds.update(other.seconds)
        left_out = Counter(self.left_out)
        left_out.update(other.left_out)
        counts = {
            item.name: getattr(self, item.name) + getattr(other, item.name)
            for item in fields(self)
            if item.name not in {"seconds", "left_out"}
        }
        return RunSummary(**counts, seconds=dict(seconds), left_out=dict(left_out))
