"""Count the target partitions of rows, from the bounds of their event times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from tidegate.model.partition import Transform

if TYPE_CHECKING:
    from datetime import datetime

    from tidegate.model.time_bounds import TimeBounds


@dataclass(frozen=True)
class FanOut:
    """The number of partitions of a target for the rows between two event times."""

    transform: Transform | None
    """The finest transform of the event time among the keys; None if there is none."""
    timezone: str
    has_other_keys: bool = False
    """Whether there are other keys, whose values do not follow from bounds of event times."""
    most: int | None = None
    """The largest number of partitions that are written, as in a rebuild; None: no limit."""

    def at_least(self, bounds: TimeBounds | None) -> int | None:
        """Count partitions as if each other key had one value; None if not known."""
        if bounds is None or self.transform is None:
            return None
        if bounds.smallest is None or bounds.largest is None:
            return 1
        count = self._unit(bounds.largest) - self._unit(bounds.smallest) + 1
        return count if self.most is None else min(count, self.most)

    def at_most(self, bounds: TimeBounds | None) -> int | None:
        """Count partitions that may have rows; None if not known."""
        return self.most if self.has_other_keys else self.at_least(bounds) or self.most

    def _unit(self, moment: datetime) -> int:
        """Return the number of hours, days or months of wall clock time."""
        try:
            local = moment.astimezone(ZoneInfo(self.timezone))
        except OverflowError:
            # The first and last days of the calendar cannot be converted to another zone.
            local = moment
        if self.transform is Transform.MONTH:
            return local.year * 12 + local.month
        day = local.toordinal()
        return day * 24 + local.hour if self.transform is Transform.HOUR else day
