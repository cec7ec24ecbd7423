"""Deletes that were read and matched nothing (ICE-4.10)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.model.wire import Value


@dataclass(frozen=True)
class IgnoredDeletes(Value):
    """Counts of deletes that matched nothing; joining those of all sub-splits counts none twice."""

    past_end: int = 0
    """Positions that their data file does not have, counted by the reader of its first row."""
    unaddressed: Mapping[str, int] = field(default_factory=dict)
    """Delete file → its rows without path or position; all readers of the file count the same."""

    @property
    def total(self) -> int:
        """The number of deletes."""
        return self.past_end + sum(self.unaddressed.values())

    def plus(self, other: IgnoredDeletes) -> IgnoredDeletes:
        """Join the counts of others."""
        return IgnoredDeletes(
            self.past_end + other.past_end, {**self.unaddressed, **other.unaddressed}
        )
