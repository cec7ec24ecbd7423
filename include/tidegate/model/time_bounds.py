"""The smallest and the largest event time of some rows, according to metadata."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from tidegate.model.wire import Value

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class TimeBounds(Value):
    """Event times of physical rows by metadata; deletes and filters only narrow them (ICE-5.10)."""

    smallest: datetime | None = None
    """None: no row has an event time, or the metadata does not have it."""
    largest: datetime | None = None

    def merged(self, other: TimeBounds) -> TimeBounds:
        """Join the bounds of two sets of rows."""
        return TimeBounds.around((self, other))

    @classmethod
    def around(cls, bounds: Sequence[TimeBounds]) -> TimeBounds:
        """Join the bounds of several sets of rows."""
        lows = [each.smallest for each in bounds if each.smallest is not None]
        highs = [each.largest for each in bounds if each.largest is not None]
        return cls(min(lows, default=None), max(highs, default=None))
