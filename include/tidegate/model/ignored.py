"""What was read and had no effect on rows: deletes that matched nothing, damaged spans of logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.model.wire import Value


@dataclass(frozen=True)
class Ignored(Value):
    """Counts of what had no effect on rows; joining those of all sub-splits counts none twice."""

    past_end: int = 0
    """Positions that their data file does not have, counted by the reader of its first row."""
    unaddressed: Mapping[str, int] = field(default_factory=dict)
    """Delete file → its rows without path or position; all readers of the file count the same."""
    damaged: Mapping[str, int] = field(default_factory=dict)
    """Log file → its damaged spans; all readers of the file count the same (HUDI-L2)."""

    @property
    def deletes(self) -> int:
        """The number of deletes that matched nothing."""
        return self.past_end + sum(self.unaddressed.values())

    @property
    def is_empty(self) -> bool:
        """Whether there was nothing of the kind."""
        return not (self.deletes or self.damaged)

    def plus(self, other: Ignored) -> Ignored:
        """Join the counts of others."""
        return Ignored(
            self.past_end + other.past_end,
            {**self.unaddressed, **other.unaddressed},
            {**self.damaged, **other.damaged},
        )
