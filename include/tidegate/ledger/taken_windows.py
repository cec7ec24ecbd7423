"""Taking windows, keeping them, and giving them back (design §4, taking a window)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from tidegate.errors import LedgerMoved, WindowNotFound, WindowOpen
from tidegate.errors.commands import command
from tidegate.ledger import numbers, rows
from tidegate.ledger.holder import Way
from tidegate.ledger.plans import select_uri
from tidegate.ledger.schema import pipeline, plan, window
from tidegate.ledger.window_rows import WindowRows

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from tidegate.ledger.holder import Holder
    from tidegate.model.ledger_rows import PipelineState, WindowState
    from tidegate.model.plan import Window


@dataclass(frozen=True)
class TakenWindows(WindowRows):
    """The windows of one pipeline, for the run that takes one and works on it."""

    def take(self, draft: Window, seen: PipelineState, holder: Holder) -> WindowState:
        """Take a new window with the next sequence number.

        Args:
            draft: the window; its sequence number is assigned here, unless a ledger is restored.
            seen: the state of the pipeline that the window was decided on.
            holder: who takes it.

        Raises:
            WindowOpen: another window is open (Transient).
            LedgerMoved: the pipeline no longer stands as it was seen (Transient).
        """
        standing = self.open()
        holder = holder.asked_about(standing.owner if standing else None)
        with self.engine.begin() as connection:
            state = numbers.lock(connection, self.name)
            held = connection.execute(self._where(window.c.state == "open")).mappings().first()
            if held is not None:
                raise self._open_error(held, holder, self.clock(connection))
            _check_unmoved(state, seen)
            taken = replace(draft, sequence=max(draft.sequence, state["next_sequence"]))
            connection.execute(
                sa.update(pipeline)
                .where(pipeline.c.name == self.name)
                .values(next_sequence=taken.sequence + 1)
            )
            expires = self.clock(connection) + holder.timeout
            values = self._window_values(taken, holder, expires)
            values |= {"attempt": state["first_fence"] + 1}
            connection.execute(sa.insert(window).values(**values))
            return rows.read_window(
                connection.execute(self._where(window.c.sequence == taken.sequence))
                .mappings()
                .one()
            )

    def resume(
        self,
        sequence: int,
        holder: Holder,
        seen: PipelineState | None,
        *,
        still_open: bool = False,
    ) -> WindowState:
        """Take an existing window: after a crash, for a retry, or as a replay.

        The attempt increases, so that its former holder can no longer announce.

        Args:
            sequence: of the window.
            holder: who works on it now.
            seen: the state of the pipeline that this was decided on; None if the decision did not
                depend on it, or if this run has taken a window since.
            still_open: whether the decision was based on the window being open.

        Raises:
            WindowNotFound: it was never taken.
            WindowOpen: another run works on it and is not known to be dead (Transient).
            LedgerMoved: the pipeline no longer stands as it was seen (Transient).
        """
        standing = self.find(sequence)
        holder = holder.asked_about(standing.owner if standing else None)
        with self.engine.begin() as connection:
            state = numbers.lock(connection, self.name)
            if seen is not None:
                _check_unmoved(state, seen)
            query = self._where(window.c.sequence == sequence)
            held = connection.execute(query).mappings().first()
            if still_open and (held is None or held["state"] != "open"):
                raise LedgerMoved(
                    pipeline=self.name,
                    expected=f"window {sequence} open",
                    found="it sealed" if held else "it dropped",
                )
            if held is None:
                raise WindowNotFound(pipeline=self.name, sequence=sequence)
            now = self.clock(connection)
            if not holder.may_take(held["owner"], held["expires"], now):
                raise self._open_error(held, holder, now)
            connection.execute(
                sa.update(window)
                .where(window.c.pipeline == self.name, window.c.sequence == sequence)
                .values(
                    attempt=held["attempt"] + 1, owner=holder.owner, expires=now + holder.timeout
                )
            )
            return rows.read_window(
                connection.execute(self._where(window.c.sequence == sequence)).mappings().one()
            )

    def give_back(self, sequence: int, attempt: int, *, lost_plan: str | None = None) -> bool:
        """Give back a window that is not worked on; an open one without a plan is dropped.

        Without a plan, nothing depends on the window: the next run decides again, from the
        checkpoint. Its number is not reused, so that a process that still works on it finds out.

        Args:
            sequence: of the window.
            attempt: the caller's; a window that a newer one took over is left alone.
            lost_plan: where its plan was, if it is gone from the work directory; the window then
                counts as one without a plan.

        Returns:
            Whether it was dropped.
        """
        mine = (
            window.c.pipeline == self.name,
            window.c.sequence == sequence,
            window.c.attempt == attempt,
        )
        with self.engine.begin() as connection:
            # Locked, so that no plan is recorded until this ends.
            query = sa.select(window).where(*mine).with_for_update()
            held = connection.execute(query).mappings().first()
            if held is None:
                return False
            planned: str | None = connection.scalar(
                select_uri(self.name, sequence, held["plan_digest"])
            )
            if held["state"] == "sealed" or planned not in {None, lost_plan}:
                self._let_go(connection, sequence)
                return False
            of_window = plan.c.pipeline == self.name, plan.c.window == sequence
            connection.execute(sa.delete(plan).where(*of_window))
            connection.execute(sa.delete(window).where(*mine))
            return True

    def renew(self, sequence: int, attempt: int, timeout: timedelta) -> None:
        """Renew a window that is worked on.

        The attempt identifies the holder, because it increases with each takeover. A window that
        was announced meanwhile has no holder, and gets none.

        Raises:
            FenceLost: a newer attempt took the window over.
        """
        with self.engine.begin() as connection:
            renewed = connection.execute(
                sa.update(window)
                .where(
                    window.c.pipeline == self.name,
                    window.c.sequence == sequence,
                    window.c.attempt == attempt,
                    window.c.owner.is_not(None),
                )
                .values(expires=self.clock(connection) + timeout)
            )
            if renewed.rowcount == 0:
                self._fenced(connection, sequence, attempt)

    def _open_error(self, held: rows.Row, holder: Holder, at: datetime) -> WindowOpen:
        owner, expires = held["owner"], held["expires"]
        if holder.may_take(owner, expires, at):
            # It stands in the way of another window, and nobody has to be waited for.
            outlook = self._left(held["sequence"])
        else:
            way = holder.asked or self._finishing(held)
            outlook = holder.outlook(owner, expires, at, way)
        return WindowOpen(
            pipeline=self.name,
            sequence=held["sequence"],
            run=owner or held["run"],
            renewed=holder.renewed(expires) if owner else "before it was given back",
            outlook=outlook,
        )

    def _left(self, sequence: int) -> str:
        """Return what to do about an open window on which nobody works any more."""
        finished, given_up = command("load", self.name), command("abandon", self.name, sequence)
        return (
            f"Nobody works on it any more: `{finished}` now finishes it, or `{given_up}` gives it "
            "up. Do one of them, then the same again."
        )

    def _finishing(self, held: rows.Row) -> Way:
        """Return how the work on a window is continued."""
        # Only an open window blocks the next load, which finishes it.
        words: tuple[object, ...] = ("load", self.name)
        if held["state"] == "sealed":
            words = ("replay", self.name, held["sequence"])
        release = ("release", self.name, held["sequence"])
        return Way(words, "finishes what it left", release)

    def _window_values(self, taken: Window, holder: Holder, expires: datetime) -> dict[str, Any]:
        return {
            "pipeline": self.name,
            "sequence": taken.sequence,
            "kind": taken.kind.value,
            "range": taken.range.to_json(),
            "end_time": taken.range.end_inclusive.time,
            "interval_start": taken.interval.start if taken.interval else None,
            "interval_end": taken.interval.end if taken.interval else None,
            "partitions": [rows.write_partition(item) for item in taken.partitions],
            "run": taken.run,
            "state": "open",
            "owner": holder.owner,
            "expires": expires,
            "taken_at": holder.now,
        }

    def _let_go(self, connection: sa.Connection, sequence: int) -> None:
        connection.execute(
            sa.update(window)
            .where(window.c.pipeline == self.name, window.c.sequence == sequence)
            .values(owner=None, expires=None)
        )


def _check_unmoved(state: rows.Row, seen: PipelineState) -> None:
    """Compare checkpoint and newest window with those that a decision was based on."""
    found = rows.read_pipeline(state)
    if (found.checkpoint, found.next_sequence) != (seen.checkpoint, seen.next_sequence):
        raise LedgerMoved(pipeline=seen.name, expected=seen.progress, found=found.progress)
