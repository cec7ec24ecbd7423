"""Deletes that were read and hit nothing (ICE-4.10)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.model.wire import Value


@dataclass(frozen=True)
class IgnoredDeletes(Value):
    """How many deletes hit nothing; joining those of all sub-splits counts none twice."""

    past_end: int = 0
    """Positions that their data file does not have, told where its first row is read."""
    unaddressed: Mapping[str, int] = field(default_factory=dict)
    """Delete file → its rows without path or position; all who read the file tell the same."""

    @property
    def total(self) -> int:
        """How many there are."""
        return self.past_end + sum(self.unaddressed.values())

    def plus(self, other: IgnoredDeletes) -> IgnoredDeletes:
        """Join what others read."""
        return IgnoredDeletes(
            self.past_end + other.past_end, {**self.unaddressed, **other.unaddressed}
        )
