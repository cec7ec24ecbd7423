"""Look windows up, in general and for the attempt that works on one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from tidegate.errors import FenceLost, WindowNotFound
from tidegate.ledger import rows
from tidegate.ledger.connect import reading
from tidegate.ledger.plans import plan_state
from tidegate.ledger.schema import window
from tidegate.model.plan import WindowKind

if TYPE_CHECKING:
    from tidegate.ledger.clock import Clock
    from tidegate.ledger.holder import Holder
    from tidegate.model.instant import DataInterval
    from tidegate.model.ledger_rows import WindowState


# Made once: to put a query together takes longer than to carry it out.
_ONE = sa.select(window).where(
    *(window.c[key] == sa.bindparam(key) for key in ("pipeline", "sequence"))
)


@dataclass(frozen=True)
class WindowRows:
    """The windows of one pipeline, for reading."""

    engine: sa.Engine
    name: str
    clock: Clock

    def open(self) -> WindowState | None:
        """Return the open window, if there is one."""
        found = self._select(window.c.state == "open")
        return found[0] if found else None

    def all(self) -> tuple[WindowState, ...]:
        """Return every window, oldest first."""
        return self._select()

    def find(self, sequence: int) -> WindowState | None:
        """Return one window, None if it was never taken."""
        mine = {"pipeline": self.name, "sequence": sequence}
        with reading(self.engine) as connection:
            row = connection.execute(_ONE, mine).mappings().first()
        return None if row is None else rows.read_window(row)

    def get(self, sequence: int) -> WindowState:
        """Return one window.

        Raises:
            WindowNotFound: it was never taken.
        """
        found = self.find(sequence)
        if found is None:
            raise WindowNotFound(pipeline=self.name, sequence=sequence)
        return found

    def before(self, sequence: int) -> WindowState | None:
        """Return the newest sealed window before a number that moved the checkpoint.

        Args:
            sequence: 0, as drafts have it, stands for the next number.
        """
        fixed = [kind.value for kind in WindowKind if not kind.moves_checkpoint]
        query = self._where(window.c.state == "sealed", window.c.kind.not_in(fixed))
        if sequence:
            query = query.where(window.c.sequence < sequence)
        with reading(self.engine) as connection:
            newest = query.order_by(window.c.sequence.desc()).limit(1)
            found = connection.execute(newest).mappings().first()
        return rows.read_window(found) if found else None

    def sealed_for(self, interval: DataInterval) -> tuple[WindowState, ...]:
        """Return the sealed windows that a backfill of `interval` replays (design §4, case 2)."""
        return self._select(
            window.c.state == "sealed",
            window.c.kind != WindowKind.REBUILD.value,
            sa.or_(
                sa.and_(
                    window.c.interval_start == interval.start, window.c.interval_end == interval.end
                ),
                sa.and_(window.c.end_time >= interval.start, window.c.end_time < interval.end),
            ),
        )

    def is_free(self, sequence: int, holder: Holder) -> bool:
        """Return whether nobody works on a window; true for one that was dropped."""
        held = self.find(sequence)
        if held is None:
            return True
        holder = holder.asked_about(held.owner)
        with reading(self.engine) as connection:
            return holder.may_take(held.owner, held.expires, self.clock(connection))

    def _fenced(
        self,
        connection: sa.Connection,
        sequence: int,
        attempt: int,
        plan_digest: str | None = None,
    ) -> rows.Row:
        """Read a window for the attempt that works on it and has recorded its plan.

        A ledger from a backup may give the same number and attempt to another window.
        """
        query = self._where(window.c.sequence == sequence)
        held = connection.execute(query).mappings().first()
        found = held["attempt"] if held is not None else 0
        is_planned = (
            plan_digest is None
            or plan_state(connection, self.name, sequence, plan_digest) is not None
        )
        if held is None or found != attempt or not is_planned:
            raise FenceLost(
                pipeline=self.name, subject=f"window {sequence}", held=attempt, found=found
            )
        return held

    def _where(self, *conditions: sa.ColumnElement[bool]) -> sa.Select[Any]:
        return sa.select(window).where(window.c.pipeline == self.name, *conditions)

    def _select(self, *conditions: sa.ColumnElement[bool]) -> tuple[WindowState, ...]:
        with reading(self.engine) as connection:
            found = connection.execute(
                self._where(*conditions).order_by(window.c.sequence)
            ).mappings()
            return tuple(rows.read_window(row) for row in found)
