"""The scenario of the demo: which days are published, which is held, when the end is reached."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from tidegate.demo.flights import FIRST_DAY, LAST_DAY, NEW_YORK
from tidegate.model.watermark import Reason

if TYPE_CHECKING:
    from tidegate.model.report import PartitionReport, PipelineReport

APPROVED = date(2013, 2, 8)
"""A day of the blizzard that a person approves."""
HELD = date(2013, 2, 9)
"""The other one, which stays held."""
LATE = date(2013, 2, 6)
"""The day for which one airline reports three days late."""
WAITING = LAST_DAY
"""The last day: not all of its flights are known yet."""

COMMENT = "The blizzard was real: half of the flights did not leave."


@dataclass(frozen=True)
class Day:
    """One day of the demo and the state of its partition."""

    date: date
    report: PartitionReport | None

    @property
    def path(self) -> str:
        """The partition's directory."""
        return partition_path(self.date)

    @property
    def is_at_the_end(self) -> bool:
        """Whether the demo has nothing more to do with it, whatever its later state."""
        if self.report is None:
            return False
        state, why = self.report.state, self.report.why
        if state.pending == "none":
            return state.revision >= (2 if self.date == LATE else 1)
        if self.date == HELD:
            return state.pending == "held"
        return self.date == WAITING and why is not None and why.reason is Reason.WATERMARK_BEHIND


def days(report: PipelineReport | None) -> list[Day]:
    """Return every day of the demo with its state in the ledger."""
    known = {str(item.state.partition): item for item in report.partitions} if report else {}
    span = (LAST_DAY - FIRST_DAY).days + 1
    dates = [FIRST_DAY + timedelta(days=number) for number in range(span)]
    return [Day(item, known.get(partition_path(item))) for item in dates]


def is_at_the_end(report: PipelineReport | None) -> bool:
    """Return whether every day has reached its final state."""
    return all(item.is_at_the_end for item in days(report))


def partition_path(day: date) -> str:
    """Return the directory of a day's partition."""
    return f"dt={day.isoformat()}"


def midnight(day: date) -> datetime:
    """Return the beginning of a day in New York."""
    return datetime(day.year, day.month, day.day, tzinfo=NEW_YORK)
