"""Return the commands that read partitions again, with the partitions that the ledger knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors.commands import command
from tidegate.pipeline.state.passed_over import partitions_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.config import PipelineConfig
    from tidegate.ledger import Ledger
    from tidegate.model.partition import Partition
    from tidegate.model.time_bounds import TimeBounds


@dataclass(frozen=True)
class LedgerRebuilding:
    """Finds the partitions that may have rows of given event times."""

    ledger: Ledger
    config: PipelineConfig

    def __call__(self, times: Sequence[TimeBounds]) -> str:
        """Return the command for the partitions that may have them."""
        known = self.ledger.partitions.all()
        return rebuild_of(self.ledger.name, partitions_at(self.config, times, known))


def rebuild_of(pipeline: str, partitions: Sequence[Partition]) -> str:
    """Return the command that reads all of these partitions again."""
    if not partitions:
        return f"`{command('rebuild', pipeline, 'PARTITION')}`"
    return f"`{command('rebuild', pipeline, *partitions)}`"
