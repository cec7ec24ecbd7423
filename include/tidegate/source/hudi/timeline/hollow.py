"""A write that is still pending before others that are done: which one, how old, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from tidegate.source.hudi.timeline.times import moment_of
from tidegate.source.hudi.timeline.writes import active_writes, blocking

if TYPE_CHECKING:
    from datetime import datetime
    from zoneinfo import ZoneInfo

    from tidegate.source.hudi.timeline.loaded import LoadedTimeline

_UNITS = (
    ("day", timedelta(days=1)),
    ("hour", timedelta(hours=1)),
    ("minute", timedelta(minutes=1)),
)


@dataclass(frozen=True)
class HollowWrite:
    """The first pending write of layout 1 that has done ones after it (HUDI-W5)."""

    requested: str
    age: timedelta
    """Since it was requested."""
    later: int
    """Done writes that were requested after it."""

    @property
    def held_back(self) -> str:
        """What it keeps from being read, in a sentence."""
        waiting = "1 later write waits" if self.later == 1 else f"{self.later} later writes wait"
        return (
            f"the write of {self.requested} has been pending for {spelled(self.age)}, and "
            f"{waiting} for it (`source.on_hollow_instant: block`). If its writer is dead, let "
            "Hudi roll it back: by the table's next write, or, if it cleans failed writes lazily, "
            "by its cleaner (`CALL run_clean`)"
        )


def hollow_write(timeline: LoadedTimeline, now: datetime, zone: ZoneInfo) -> HollowWrite | None:
    """Find the first pending write that done ones would pass over; None if there is none.

    A write at work after which nothing was done passes nothing over.

    Args:
        timeline: one listing.
        now: the clock of the run.
        zone: of the table's times.
    """
    first = blocking(timeline)
    if first is None:
        return None
    later = sum(requested > first.requested for _, requested in active_writes(timeline))
    if not later:
        return None
    age = now - moment_of(first.requested, zone)
    return HollowWrite(first.requested, max(age, timedelta(0)), later)


def spelled(age: timedelta) -> str:
    """Return an age in the largest unit that it fills."""
    for name, unit in _UNITS:
        if age >= unit:
            number = age // unit
            return f"1 {name}" if number == 1 else f"{number} {name}s"
    return "less than a minute"
