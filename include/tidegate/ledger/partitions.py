"""The partitions of the target: what is pending, who claimed it, why it is not published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlalchemy as sa

from tidegate.errors import ClaimHeld, FenceLost, LedgerMoved, PartitionNotFound
from tidegate.ledger import rows
from tidegate.ledger.connect import reading
from tidegate.ledger.holder import Way
from tidegate.ledger.schema import partition
from tidegate.ledger.setting_aside import contributions_to
from tidegate.model.aside import Aside
from tidegate.model.counting import marks_of, plans_of, set_aside
from tidegate.model.ledger_rows import Claim, PartitionState
from tidegate.model.nearness import nearest_first

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, timedelta

    from tidegate.ledger.clock import Clock
    from tidegate.ledger.holder import Holder
    from tidegate.model.message import Contribution
    from tidegate.model.partition import Partition
    from tidegate.model.watermark import Evaluation

_NAMED = 5
"""Partitions that a message names."""
_OF_ONE = (
    partition.c.pipeline == sa.bindparam("pipeline"),
    partition.c.partition == sa.bindparam("partition"),
)
# Made once: to put a query together takes longer than to carry it out.
_STATE = sa.select(partition).where(*_OF_ONE)
_LOCKED = _STATE.with_for_update()
_FENCE = (
    sa.select(
        *(
            partition.c[key]
            for key in ("claim_fence", "claim_owner", "revision", "number", "pending")
        )
    )
    .where(*_OF_ONE)
    .with_for_update()
)
_CHANGE = sa.update(partition).where(
    partition.c.pipeline == sa.bindparam("of_pipeline"),
    partition.c.partition == sa.bindparam("of_partition"),
)


@dataclass(frozen=True)
class Partitions:
    """The partitions of one pipeline.

    Failure: every method is one transaction; it happened or it did not. All may be repeated.
    """

    engine: sa.Engine
    name: str
    clock: Clock

    def all(self) -> tuple[PartitionState, ...]:
        """Return every partition in order of partition time, then path (PC-T05)."""
        query = (
            sa.select(partition)
            .where(partition.c.pipeline == self.name)
            .order_by(partition.c.start.is_(None), partition.c.start, partition.c.partition)
        )
        with reading(self.engine) as connection:
            return tuple(
                rows.read_partition_state(row) for row in connection.execute(query).mappings()
            )

    def find(self, target: Partition) -> PartitionState | None:
        """Return one partition, None if no window ever touched it."""
        with reading(self.engine) as connection:
            mine = {"pipeline": self.name, "partition": target.path}
            row = connection.execute(_STATE, mine).mappings().first()
        return None if row is None else rows.read_partition_state(row)

    def get(self, target: Partition) -> PartitionState:
        """Return one partition.

        Raises:
            PartitionNotFound: no window ever touched it.
        """
        found = self.find(target)
        if found is None:
            raise self.not_found(target)
        return found

    def not_found(self, *targets: Partition, looked: str = "") -> PartitionNotFound:
        """Return the error for partitions that no window ever touched.

        Args:
            targets: the partitions.
            looked: where else they were looked for, as a part of the message.
        """
        # The nearest first: a wrong name is usually nearly right.
        known = nearest_first(targets[0], (state.partition for state in self.all()))
        named = ", ".join(map(str, known[:_NAMED]))
        listed = named + (f" and {len(known) - _NAMED} more" if known[_NAMED:] else "")
        return PartitionNotFound(
            pipeline=self.name,
            partition=", ".join(map(str, targets)),
            looked=looked,
            known=listed or "none",
        )

    def record_why(self, target: Partition, why: Evaluation) -> None:
        """Store the latest evaluation of a partition, unless it is held."""
        with self.engine.begin() as connection:
            connection.execute(
                sa.update(partition)
                .where(*self._key(target), partition.c.pending == "pending")
                .values(why=why.to_json())
            )

    def record_whys(self, whys: Mapping[Partition, Evaluation]) -> None:
        """Store the latest evaluations of partitions, unless they are held."""
        if not whys:
            return
        # An announce locks partitions in this order, too: none waits for one that waits for it.
        found = [{"path": target.path, "found": why.to_json()} for target, why in whys.items()]
        with self.engine.begin() as connection:
            connection.execute(
                sa.update(partition)
                .where(
                    partition.c.pipeline == self.name,
                    partition.c.partition == sa.bindparam("path"),
                    partition.c.pending == "pending",
                )
                .values(why=sa.bindparam("found")),
                sorted(found, key=lambda each: str(each["path"])),
            )

    def claim(
        self, target: Partition, holder: Holder, found: PartitionState | None = None
    ) -> Claim:
        """Claim the right to propose, check or commit a partition; the fence increases each time.

        Args:
            target: the partition.
            holder: who claims it.
            found: the partition as it was read a moment ago; None: it is read here.

        Raises:
            ClaimHeld: another run has it and is not known to be dead (Transient).
        """
        holder = holder.asked_about((found or self.get(target)).owner)
        with self.engine.begin() as connection:
            mine = {"pipeline": self.name, "partition": target.path}
            row = connection.execute(_LOCKED, mine).mappings().first()
            if row is None:
                raise LedgerMoved(
                    pipeline=self.name, expected=f"partition {target}", found="no such partition"
                )
            now = self.clock(connection)
            if not holder.may_take(row["claim_owner"], row["claim_expires"], now):
                raise self._held_error(target, row, holder, now)
            fence = row["claim_fence"] + 1
            change_partition(
                connection,
                self.name,
                target,
                claim_owner=holder.owner,
                claim_fence=fence,
                claim_expires=now + holder.timeout,
            )
            return Claim(holder.owner, fence)

    def is_free(self, target: Partition, holder: Holder) -> bool:
        """Return whether `claim` would succeed now; true for a partition that is not known."""
        held = self.find(target)
        if held is None:
            return True
        holder = holder.asked_about(held.owner)
        with reading(self.engine) as connection:
            return holder.may_take(held.owner, held.expires, self.clock(connection))

    def renew(self, target: Partition, claim: Claim, timeout: timedelta) -> None:
        """Renew a claim; one that was given back stays given back.

        Raises:
            FenceLost: the claim was taken over.
        """
        with self.engine.begin() as connection:
            renewed = connection.execute(
                sa.update(partition)
                .where(
                    *self._key(target),
                    partition.c.claim_fence == claim.fence,
                    partition.c.claim_owner == claim.owner,
                )
                .values(claim_expires=self.clock(connection) + timeout)
            )
            if renewed.rowcount == 0:
                check_fence(connection, self.name, target, claim)

    def check_fence(self, target: Partition, claim: Claim) -> None:
        """Check that nobody took the claim over.

        Raises:
            FenceLost: the claim was taken over.
        """
        with self.engine.begin() as connection:
            check_fence(connection, self.name, target, claim)

    def release(self, target: Partition, claim: Claim) -> None:
        """Give the claim back; nothing happens if it was taken over meanwhile."""
        with self.engine.begin() as connection:
            connection.execute(
                sa.update(partition)
                .where(*self._key(target), partition.c.claim_fence == claim.fence)
                .values(claim_owner=None, claim_expires=None)
            )

    def restore_hold(self, target: Partition, why: Evaluation) -> None:
        """Hold a partition, as a verdict in a file says."""
        with self.engine.begin() as connection:
            connection.execute(
                sa.update(partition)
                .where(*self._key(target))
                .values(pending="held", why=why.to_json())
            )

    def note_standing(self, target: Partition, claim: Claim, seen: Sequence[Contribution]) -> bool:
        """Record that a partition's content is that of its revision.

        Nothing is pending then, unless late rows are held.

        Args:
            target: the partition.
            claim: the caller's.
            seen: the contributions with that content, and those that are set aside.

        Returns:
            False if a contribution was added or changed meanwhile; nothing is recorded then.

        Raises:
            FenceLost: the claim was taken over.
        """
        with self.engine.begin() as connection:
            check_fence(connection, self.name, target, claim)
            known = contributions_to(connection, self.name, target.path)
            if (plans_of(known), marks_of(known)) != (plans_of(seen), marks_of(seen)):
                return False
            standing = {"pending": "none", "first_seen": None, "why": None}
            if any(item.aside is Aside.LATE_HELD for item in set_aside(known)):
                standing = {}
            connection.execute(
                sa.update(partition)
                .where(*self._key(target))
                .values(**standing, claim_owner=None, claim_expires=None)
            )
            return True

    def _held_error(
        self, target: Partition, row: rows.Row, holder: Holder, at: datetime
    ) -> ClaimHeld:
        way = Way(("publish", self.name, target), "finishes what it left")
        owner, expires = row["claim_owner"], row["claim_expires"]
        return ClaimHeld(
            pipeline=self.name,
            partition=str(target),
            owner=owner,
            renewed=holder.renewed(expires),
            outlook=holder.outlook(owner, expires, at, way),
        )

    def _key(self, target: Partition) -> tuple[sa.ColumnElement[bool], ...]:
        return (partition.c.pipeline == self.name, partition.c.partition == target.path)


def change_partition(
    connection: sa.Connection, name: str, target: Partition, **changed: object
) -> None:
    """Change columns of a partition, whatever they have, inside the caller's transaction."""
    mine = {"of_pipeline": name, "of_partition": target.path}
    connection.execute(_CHANGE, {**mine, **changed})


def check_fence(connection: sa.Connection, name: str, target: Partition, claim: Claim) -> rows.Row:
    """Compare a claim's fence, and keep others from taking it until the transaction ends.

    Returns:
        The partition's columns `revision`, `number` and `pending`, which nobody changes until then.

    Raises:
        FenceLost: the claim was taken over.
    """
    mine = {"pipeline": name, "partition": target.path}
    found = connection.execute(_FENCE, mine).mappings().first()
    fence = found["claim_fence"] if found else 0
    # The owner is compared, too: a ledger from a backup gives the same fence to somebody else. A
    # claim that was given back has no owner.
    is_anothers = found is not None and found["claim_owner"] not in {claim.owner, None}
    if found is None or fence != claim.fence or is_anothers:
        raise FenceLost(pipeline=name, subject=str(target), held=claim.fence, found=fence)
    return found
