"""Check a person's decision, inside its transaction (PC-C06)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlalchemy as sa

from tidegate.errors import DecisionRefused, NotHeld, PublicationLapsed
from tidegate.ledger import rows
from tidegate.ledger.lapsing import is_approved, lapse
from tidegate.ledger.schema import BEGUN, partition, publication
from tidegate.model.publication import Outcome, PublicationState

if TYPE_CHECKING:
    from collections.abc import Collection

    from tidegate.model.ledger_rows import PartitionState
    from tidegate.model.partition import Partition


@dataclass(frozen=True)
class Deciding:
    """One decision on one partition, whose row is locked until the transaction ends."""

    connection: sa.Connection
    name: str
    target: Partition

    def check(self, digest: str, *, approved: bool) -> None:
        """Check that a decision is still about what the person saw, and can take effect.

        Raises:
            DecisionRefused: the publication was replaced, or its commit has begun.
            NotHeld: it waits for no decision, or there is nothing left to reject.
            PublicationLapsed: what was shown can no longer be committed.
        """
        state = self._state()
        row = self._publication(publication.c.digest == digest)
        if row is None or row["state"] != PublicationState.PROPOSED.value:
            raise DecisionRefused(
                pipeline=self.name,
                partition=str(self.target),
                digest=digest,
                found=self._instead(row),
            )
        held = row["verdict"] is not None and row["verdict"]["outcome"] == Outcome.HOLD.value
        # Rows that arrived since end the hold. What was shown may still be approved; a rejection
        # does not concern the new rows, but withdraws an earlier approval.
        waits = state.pending == "held" or (
            state.pending == "pending" and (approved or is_approved(row))
        )
        if not held or not waits:
            raise NotHeld(pipeline=self.name, partition=str(self.target), state=state.name)
        change = lapse(self.connection, row, as_shown=True) if approved else None
        if change is not None:
            raise PublicationLapsed(pipeline=self.name, partition=str(self.target), change=change)

    def check_reopened(self, released: Collection[int]) -> None:
        """Check that the partition waits for a decision, or has one, or rows of it are set aside.

        Args:
            released: the windows of these rows.

        Raises:
            NotHeld: it does not, and none are; or its commit has begun.
        """
        state = self._state()
        waiting = self._publication(publication.c.state == PublicationState.PROPOSED.value)
        waits = state.pending == "held" or (waiting is not None and is_approved(waiting))
        begun = self._publication(publication.c.state.in_(BEGUN))
        if not (waits or released) or begun is not None:
            found = "being committed" if begun is not None else state.name
            raise NotHeld(pipeline=self.name, partition=str(self.target), state=found)

    def _instead(self, row: rows.Row | None) -> str:
        """Return the state of a publication that cannot be decided on."""
        if row is not None and row["state"] == PublicationState.RECORDED.value:
            return f"it is committed as revision {row['base_revision'] + 1}"
        if row is not None and row["state"] != PublicationState.DROPPED.value:
            return "its commit has begun"
        waiting = self._publication(publication.c.state == PublicationState.PROPOSED.value)
        if waiting is None:
            what = "there is none of that name" if row is None else "it was dropped"
            return f"{what}, and no other one is proposed"
        if row is None:
            return f"there is none of that name; {waiting['digest']} is proposed"
        return f"it was replaced by {waiting['digest']}"

    def _state(self) -> PartitionState:
        """Lock and read the partition.

        Raises:
            NotHeld: the ledger was replaced by one that does not know it.
        """
        query = (
            sa.select(partition)
            .where(partition.c.pipeline == self.name, partition.c.partition == self.target.path)
            .with_for_update()
        )
        row = self.connection.execute(query).mappings().first()
        if row is None:
            raise NotHeld(pipeline=self.name, partition=str(self.target), state="not known")
        return rows.read_partition_state(row)

    def _publication(self, condition: sa.ColumnElement[bool]) -> rows.Row | None:
        query = sa.select(publication).where(
            publication.c.pipeline == self.name,
            publication.c.partition == self.target.path,
            condition,
        )
        return self.connection.execute(query).mappings().first()
