"""The watermark of a pipeline, and the reasons why a partition is not published yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from typing import Any

from tidegate.model.wire import SPARSE, Value


@dataclass(frozen=True)
class WatermarkStep(Value):
    """How an announce computed its watermark (PC-W10)."""

    previous: datetime | None
    largest_event_time: datetime | None
    lateness_seconds: float
    future_rows: int
    idle: bool
    value: datetime | None
    last_data_at: datetime | None = None
    """When rows were last taken in, by the clock of announce.

    `idle_timeout` counts from it.
    """
    basis: str | None = field(default=None, metadata={SPARSE: True})
    """What it is measured in: a column of event times, or commit times; None: not kept."""

    def counts_for(self, basis: str | None) -> bool:
        """Return whether it is measured in this, as far as is known."""
        return None in {self.basis, basis} or self.basis == basis

    def not_before(self, other: WatermarkStep | None) -> WatermarkStep:
        """Return the step with value and time of the last rows not before those of another step.

        The value of a step that is measured in something else does not count.

        Args:
            other: the step in the ledger when this one is stored, which may differ from its base.
        """
        if other is None:
            return self
        value = _latest(self.value, other.value) if self.counts_for(other.basis) else self.value
        last_data_at = _latest(self.last_data_at, other.last_data_at)
        return replace(self, value=value, last_data_at=last_data_at)


def _latest(*moments: datetime | None) -> datetime | None:
    return max((moment for moment in moments if moment is not None), default=None)


class Reason(Enum):
    """Why a partition is not committed: a closed list (PC-C02)."""

    WATERMARK_UNDEFINED = "WATERMARK_UNDEFINED"
    WATERMARK_BEHIND = "WATERMARK_BEHIND"
    DELAY_NOT_ELAPSED = "DELAY_NOT_ELAPSED"
    ALL_SOURCES_IDLE = "ALL_SOURCES_IDLE"
    TIME_UNPARSABLE = "TIME_UNPARSABLE"
    DEFAULT_PARTITION = "DEFAULT_PARTITION"
    OPEN_FILE = "OPEN_FILE"
    SPLITS_UNREAD = "SPLITS_UNREAD"
    COUNT_SHORT = "COUNT_SHORT"
    COUNT_UNKNOWN = "COUNT_UNKNOWN"
    GATE_FAILED = "GATE_FAILED"
    APPROVAL_MISSING = "APPROVAL_MISSING"
    LATE_HELD = "LATE_HELD"
    POLICY_FAILED = "POLICY_FAILED"
    NO_POLICY = "NO_POLICY"


@dataclass(frozen=True)
class ConditionResult(Value):
    """What came of one condition of `commit.require` (PC-C01)."""

    name: str
    """`trigger`, `counts`, `gate` or `approval`."""
    holds: bool | None
    """None: it is asked once those before it hold."""
    reason: Reason | None
    detail: str
    """A text for people, as in `Evaluation`."""
    inputs: Mapping[str, Any]
    """The values that were compared, for machines."""


@dataclass(frozen=True)
class Evaluation(Value):
    """The outcome of evaluating one pending partition; the ledger has the latest."""

    committable: bool
    reason: Reason | None
    detail: str
    """A text for people: the values compared, and what is missing."""
    evaluated_at: datetime
    due: datetime | None = None
    """Event time (partition-time) or clock (process-time) that has to be passed.

    None if unknown.
    """
    waiting: str | None = None
    """The run that said last that it waits for the partition; it may have ended since."""
    failed: str | None = None
    """When the last attempt to publish it ended with an error, and which; until it succeeds."""
    conditions: tuple[ConditionResult, ...] | None = field(default=None, metadata={SPARSE: True})
    """Every condition with its result; None: only the trigger is asked before the gate."""

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Every reason why it is not committed, the decisive one first."""
        more = [item.reason for item in self.conditions or () if item.holds is False]
        return tuple(dict.fromkeys(reason for reason in (self.reason, *more) if reason))

    @property
    def failing(self) -> str:
        """Every reason with its values, in one line; empty if there is none."""
        if self.reason is None:
            return ""
        told = {self.reason: self.detail}
        for item in self.conditions or ():
            if item.holds is False and item.reason is not None:
                told.setdefault(item.reason, item.detail)
        return "; ".join(f"{reason.value}: {detail}" for reason, detail in told.items())

    def to_line(self) -> str:
        """Return the reasons and their values, for a line of a log."""
        return self.failing or self.detail
