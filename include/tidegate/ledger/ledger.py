"""One pipeline's ledger: its windows, partitions and publications together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tidegate.ledger.clock import database_time
from tidegate.ledger.connect import keeping_open, reading_together
from tidegate.ledger.contributions import Contributions
from tidegate.ledger.expected import Expected
from tidegate.ledger.known_partitions import read_known_partition, read_known_partitions
from tidegate.ledger.partitions import Partitions
from tidegate.ledger.pipelines import Pipelines
from tidegate.ledger.places import place_of
from tidegate.ledger.plans import Plans
from tidegate.ledger.publications import Publications
from tidegate.ledger.windows import Windows

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import sqlalchemy as sa

    from tidegate.ledger.clock import Clock
    from tidegate.model.ledger_rows import KnownPartition
    from tidegate.model.partition import Partition


@dataclass(frozen=True)
class Ledger:
    """The ledger of one pipeline."""

    engine: sa.Engine
    name: str
    clock: Clock = database_time
    """The clock that claims are measured by."""

    @property
    def place(self) -> str | None:
        """The file or folder that it is in; None on a server, and in memory."""
        return place_of(self.engine)

    def keeping_open(self) -> AbstractContextManager[None]:
        """Keep connections to the database while a step asks it again and again."""
        return keeping_open(self.engine)

    def reading_together(self) -> AbstractContextManager[None]:
        """Read in one transaction what this thread reads in the meantime; nothing is written."""
        return reading_together(self.engine)

    @cached_property
    def pipeline(self) -> Pipelines:
        """The pipeline as a whole: identity, checkpoint, watermark."""
        return Pipelines(self.engine, self.name)

    @cached_property
    def windows(self) -> Windows:
        """Its windows."""
        return Windows(self.engine, self.name, self.clock)

    @cached_property
    def plans(self) -> Plans:
        """The plans of its windows."""
        return Plans(self.engine, self.name)

    @cached_property
    def contributions(self) -> Contributions:
        """The contributions of its windows to its partitions."""
        return Contributions(self.engine, self.name)

    @cached_property
    def partitions(self) -> Partitions:
        """Its partitions and claims."""
        return Partitions(self.engine, self.name, self.clock)

    @cached_property
    def expected(self) -> Expected:
        """Its partitions that a calendar expects."""
        return Expected(self.engine, self.name)

    def known_partitions(self, *, waiting_only: bool = False) -> tuple[KnownPartition, ...]:
        """Return all that is known of every partition, in order of partition time (PC-T05).

        Args:
            waiting_only: leave out partitions that have nothing pending.
        """
        return read_known_partitions(self.engine, self.name, waiting_only=waiting_only)

    def known_partition(self, target: Partition) -> KnownPartition | None:
        """Return all that is known of one partition; None if no window ever touched it."""
        return read_known_partition(self.engine, self.name, target)

    @cached_property
    def publications(self) -> Publications:
        """Its publications and revisions."""
        return Publications(self.engine, self.name)
