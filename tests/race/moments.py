"""A clock that only the walk moves: each look is later than the one before, and nobody waits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

BEGINNING = datetime(2026, 6, 1, tzinfo=UTC)
EARLIER = BEGINNING - timedelta(days=30)
"""When the files were made that stand before a run."""
_LOOK = timedelta(seconds=1)
CLAIMS_END = timedelta(hours=2)
"""After that every claim that was taken before has run out."""


@dataclass
class Clock:
    """The time of one run, for the clocks of commands and the times of files."""

    time: datetime = BEGINNING

    def now(self) -> datetime:
        """Look at the clock."""
        self.time += _LOOK
        return self.time

    def wait(self, length: timedelta = CLAIMS_END) -> None:
        """Let time pass."""
        self.time += length
