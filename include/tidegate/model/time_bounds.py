"""The smallest and the largest event time of some rows, as metadata tells them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tidegate.model.wire import Value


@dataclass(frozen=True)
class TimeBounds(Value):
    """Event times of physical rows by metadata; deletes and filters only narrow them (ICE-5.10)."""

    smallest: datetime | None = None
    """None: no row has an event time, or the metadata does not say."""
    largest: datetime | None = None

    def merged(self, other: TimeBounds) -> TimeBounds:
        """Join the bounds of two sets of rows."""
        lows = [moment for moment in (self.smallest, other.smallest) if moment is not None]
        highs = [moment for moment in (self.largest, other.largest) if moment is not None]
        return TimeBounds(min(lows, default=None), max(highs, default=None))
