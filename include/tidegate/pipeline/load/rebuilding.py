"""Return the commands that read partitions again, with the partitions that the ledger knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors.commands import command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import PartitionState
    from tidegate.model.partition import Partition
    from tidegate.model.time_bounds import TimeBounds


@dataclass(frozen=True)
class LedgerRebuilding:
    """Finds the partitions that may have rows of given event times."""

    ledger: Ledger
    by_event_time: bool
    """Whether partitions are made from the event time; otherwise any may have any row."""

    def __call__(self, times: TimeBounds) -> str:
        """Return the command for the partitions that may have them."""
        known = self.ledger.partitions.all()
        return rebuild_of(
            self.ledger.name,
            [
                state.partition
                for state in known
                if not self.by_event_time or _may_hold(state, times)
            ],
        )


def rebuild_of(pipeline: str, partitions: Sequence[Partition]) -> str:
    """Return the command that reads all of these partitions again."""
    if not partitions:
        return f"`{command('rebuild', pipeline, 'PARTITION')}`"
    return f"`{command('rebuild', pipeline, *partitions)}`"


def _may_hold(state: PartitionState, times: TimeBounds) -> bool:
    """Return whether rows of some event times may be in a partition, whose end is exclusive."""
    if state.start is None or state.end is None:
        return True
    if times.smallest is None or times.largest is None:
        return True
    return state.start <= times.largest and times.smallest < state.end
