"""Partitions that a calendar expects: known to the ledger before they have rows (PC-C04)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from tidegate.ledger import numbers, rows
from tidegate.ledger.connect import reading
from tidegate.ledger.schema import partition, pipeline
from tidegate.model.expected import Alarm, Position

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from tidegate.model.expected import DuePartition
    from tidegate.model.partition import Partition

_AT_ONCE = 500
"""Partitions that are looked for in one query."""


@dataclass(frozen=True)
class Expected:
    """The expected partitions of one pipeline.

    Failure: every method is one transaction; it happened or it did not. All may be repeated.
    """

    engine: sa.Engine
    name: str

    def position(self) -> Position | None:
        """Return how far the calendar was read; None if it never was."""
        with reading(self.engine) as connection:
            found = connection.scalar(self._position)
        return rows.optional(Position, found)

    def know(
        self,
        due: Sequence[DuePartition],
        now: datetime,
        seen: Position | None,
        reached: Position,
        alarm: Alarm | None,
    ) -> tuple[Partition, ...]:
        """Make partitions known that have no rows, and note how far the calendar was read.

        Args:
            due: the partitions whose turn has come.
            now: clock of the look.
            seen: how far the calendar was read when this was decided.
            reached: how far it is read now.
            alarm: what is told about those without rows, which are then missing; None: they are
                pending, and are published without files.

        Returns:
            Those that were not known; none if another process went on with the calendar.
        """
        with self.engine.begin() as connection:
            # An announce takes this lock first, too: it may have rows of the same partitions.
            state = numbers.lock(connection, self.name)
            if rows.optional(Position, state["expected"]) != seen:
                return ()
            known = set(self._known(connection, [item.partition.path for item in due]))
            fresh = [item for item in due if item.partition.path not in known]
            values = [self._values(item, state["first_fence"], now, alarm) for item in fresh]
            if values:
                connection.execute(sa.insert(partition), values)
            connection.execute(
                sa.update(pipeline)
                .where(pipeline.c.name == self.name)
                .values(expected=reached.to_json())
            )
        return tuple(item.partition for item in fresh)

    def restore(self, target: Partition, times: tuple[datetime | None, ...], now: datetime) -> None:
        """Make a partition known that was published without files, as its commit says."""
        start, end = times
        with self.engine.begin() as connection:
            state = numbers.lock(connection, self.name)
            if target.path in set(self._known(connection, [target.path])):
                return
            found = self._row(target, state["first_fence"]) | {"start": start, "end": end}
            values = {**found, "pending": "pending", "first_seen": now, "alarm": None}
            connection.execute(sa.insert(partition).values(**values))

    def without_rows(self) -> tuple[tuple[Partition, Alarm | None], ...]:
        """Return the partitions that are neither published nor pending, each with its alarm."""
        query = sa.select(partition.c["values"], partition.c.alarm).where(*self._without_rows)
        with reading(self.engine) as connection:
            return tuple(
                (rows.read_partition(values), rows.optional(Alarm, alarm))
                for values, alarm in connection.execute(query)
            )

    def revive(self, target: Partition, now: datetime, alarm: Alarm | None) -> bool:
        """Do with a partition that lost its rows what `know` does; return whether it has none."""
        found = {"alarm": alarm.to_json()} if alarm else {"pending": "pending", "first_seen": now}
        with self.engine.begin() as connection:
            changed = connection.execute(
                sa.update(partition)
                .where(*self._without_rows, partition.c.partition == target.path)
                .values(**found)
            )
            return changed.rowcount > 0

    def raise_alarm(self, target: Partition, alarm: Alarm) -> bool:
        """Store an alarm; return whether it is the first one since the partition's revision."""
        mine = (partition.c.pipeline == self.name, partition.c.partition == target.path)
        with self.engine.begin() as connection:
            query = sa.select(partition.c.alarm, partition.c.revision).where(*mine)
            row = connection.execute(query.with_for_update()).mappings().first()
            if row is None or row["revision"] != alarm.revision:
                return False
            before = rows.optional(Alarm, row["alarm"])
            if before is not None and before.covers(alarm):
                return False
            connection.execute(sa.update(partition).where(*mine).values(alarm=alarm.to_json()))
            return True

    @property
    def _position(self) -> sa.Select[Any]:
        return sa.select(pipeline.c.expected).where(pipeline.c.name == self.name)

    @property
    def _without_rows(self) -> tuple[sa.ColumnElement[bool], ...]:
        return (
            partition.c.pipeline == self.name,
            partition.c.revision == 0,
            partition.c.pending == "none",
        )

    def _known(self, connection: sa.Connection, paths: Sequence[str]) -> Iterator[str]:
        for first in range(0, len(paths), _AT_ONCE):
            yield from connection.scalars(
                sa.select(partition.c.partition).where(
                    partition.c.pipeline == self.name,
                    partition.c.partition.in_(paths[first : first + _AT_ONCE]),
                )
            )

    def _values(
        self, item: DuePartition, fence: int, now: datetime, alarm: Alarm | None
    ) -> dict[str, Any]:
        return self._row(item.partition, fence) | {
            "start": item.start,
            "end": item.end,
            "pending": "none" if alarm else "pending",
            "first_seen": None if alarm else now,
            "alarm": alarm.to_json() if alarm else None,
        }

    def _row(self, target: Partition, fence: int) -> dict[str, Any]:
        return {
            "pipeline": self.name,
            "partition": target.path,
            "values": rows.write_partition(target),
            "revision": 0,
            "rows": 0,
            "claim_fence": fence,
        }
