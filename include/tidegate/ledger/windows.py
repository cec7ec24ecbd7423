"""Taking windows, and announcing what they brought (design §4, taking a window)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from tidegate.errors import FenceLost, LedgerMoved, WindowNotFound, WindowOpen
from tidegate.ledger import numbers, rows
from tidegate.ledger.announcing import Announcement, Announcing
from tidegate.ledger.connect import reading
from tidegate.ledger.pipelines import store_watermark
from tidegate.ledger.plans import plan_state, select_uri
from tidegate.ledger.schema import pipeline, plan, window
from tidegate.model.message import RunSummary
from tidegate.model.plan import Window, WindowKind

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from tidegate.ledger.clock import Clock
    from tidegate.ledger.holder import Holder
    from tidegate.model.instant import DataInterval
    from tidegate.model.ledger_rows import PipelineState, WindowState
    from tidegate.model.partition import Partition


@dataclass(frozen=True)
class Windows:
    """The windows of one pipeline.

    Failure: every method is one transaction; it happened or it did not. All may be repeated.
    """

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
        found = self._select(window.c.sequence == sequence)
        return found[0] if found else None

    def get(self, sequence: int) -> WindowState:
        """Return one window.

        Raises:
            WindowNotFound: it was never taken.
        """
        found = self.find(sequence)
        if found is None:
            raise WindowNotFound(pipeline=self.name, sequence=sequence)
        return found

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

    def take(self, draft: Window, seen: PipelineState, holder: Holder) -> WindowState:
        """Take a new window with the next sequence number.

        Args:
            draft: the window; its sequence number is given here, unless a ledger is restored.
            seen: the pipeline as it stood when the window was decided on, whatever its kind.
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
                raise self._open_error(held, holder)
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
        """Work on a window that is there already: after a crash, for a retry, or as a replay.

        The attempt goes up, so that whoever worked on it before can no longer announce.

        Args:
            sequence: of the window.
            holder: who works on it now.
            seen: the pipeline as it stood when that was decided; None where that did not depend on
                it, or this very run has taken a window since.
            still_open: whether it was decided on a window that was open.

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
                found = f"window {sequence} {'sealed' if held else 'dropped'}"
                raise LedgerMoved(pipeline=self.name, expected="it open", found=found)
            if held is None:
                raise WindowNotFound(pipeline=self.name, sequence=sequence)
            now = self.clock(connection)
            if not holder.may_take(held["owner"], held["expires"], now):
                raise self._open_error(held, holder)
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

    def is_free(self, sequence: int, holder: Holder) -> bool:
        """Return whether nobody works on a window; true for one that was dropped."""
        held = self.find(sequence)
        if held is None:
            return True
        holder = holder.asked_about(held.owner)
        with reading(self.engine) as connection:
            return holder.may_take(held.owner, held.expires, self.clock(connection))

    def give_back(self, sequence: int, attempt: int, *, lost_plan: str | None = None) -> bool:
        """Let go of a window that is not worked on; an open one without a plan is dropped.

        Nobody was promised what it would bring: the next run decides on the checkpoint anew. No
        other window gets its number, so that whoever still works on it finds out.

        Args:
            sequence: of the window.
            attempt: the caller's; a window that a newer one took over is left alone.
            lost_plan: where its plan was, if that is gone from the work directory: nobody can go on
                with it, as if there were none.

        Returns:
            Whether it was dropped.
        """
        mine = (
            window.c.pipeline == self.name,
            window.c.sequence == sequence,
            window.c.attempt == attempt,
        )
        with self.engine.begin() as connection:
            # Kept from those who record a plan, until this ends.
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
        """Let the time of a window that is worked on begin anew.

        The attempt tells whose it is, since every taking raises it. A window that was announced
        meanwhile is held by nobody, and stays so.

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

    def reserve(self, sequence: int, attempt: int, plan_digest: str) -> int:
        """Reserve the number of an announce.

        Raises:
            FenceLost: a newer attempt took the window over, or the window is another one.
        """
        with self.engine.begin() as connection:
            numbers.lock(connection, self.name)
            self._fenced(connection, sequence, attempt, plan_digest)
            return numbers.reserve_for_window(connection, self.name, sequence)

    def note_seconds(self, sequence: int, attempt: int, stage: str, seconds: float) -> None:
        """Keep how long a stage took; a process that lost the window notes nothing."""
        with self.engine.begin() as connection:
            query = self._where(window.c.sequence == sequence)
            held = connection.execute(query).mappings().first()
            if held is None or held["attempt"] != attempt:
                return
            summary = rows.optional(RunSummary, held["summary"]) or RunSummary()
            timed = replace(summary, seconds={**summary.seconds, stage: round(seconds, 3)})
            connection.execute(
                sa.update(window)
                .where(window.c.pipeline == self.name, window.c.sequence == sequence)
                .values(summary=timed.to_json())
            )

    def announce(self, announced: Announcement, now: datetime) -> tuple[Partition, ...]:
        """Seal a window: contributions, checkpoint and watermark in one transaction (design §4).

        Announcing the same plan of a sealed window again changes nothing; another plan replaces the
        window's contributions, over the union of the old and the new partitions.

        Returns:
            Partitions whose contribution changed.

        Raises:
            FenceLost: a newer attempt took the window over.
            NumberPassed: something newer was recorded for the window or a partition (Transient).
        """
        with self.engine.begin() as connection:
            numbers.lock(connection, self.name)
            held = self._fenced(
                connection, announced.sequence, announced.attempt, announced.plan_digest
            )
            if held["state"] == "sealed" and held["plan_digest"] == announced.plan_digest:
                if announced.number > held["number"]:
                    numbers.record_for_window(
                        connection, self.name, announced.sequence, announced.number
                    )
                self._let_go(connection, announced.sequence)
                return ()
            numbers.record_for_window(connection, self.name, announced.sequence, announced.number)
            announcing = Announcing(connection, self.name)
            effective = announcing.replace_contributions(announced, now)
            late = sum(item.rows for item in effective if item.late)
            timed = rows.optional(RunSummary, held["summary"]) or RunSummary()
            summary = replace(announced.summary, rows_late=late, seconds=timed.seconds)
            announcing.seal(announced, summary, now)
            if held["state"] == "open" and WindowKind(held["kind"]).moves_checkpoint:
                end = rows.read_window(held).window.range.end_inclusive
                connection.execute(
                    sa.update(pipeline)
                    .where(pipeline.c.name == self.name)
                    .values(checkpoint=end.to_json())
                )
                store_watermark(connection, self.name, announced.watermark)
            return tuple(item.partition for item in effective)

    def _fenced(
        self,
        connection: sa.Connection,
        sequence: int,
        attempt: int,
        plan_digest: str | None = None,
    ) -> rows.Row:
        """Read a window for the attempt that works on it, and has recorded its plan.

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

    def _open_error(self, held: rows.Row, holder: Holder) -> WindowOpen:
        run, expires = held["owner"] or held["run"], held["expires"]
        # Only a window that is open stands in the way of the next load, which finishes it.
        words: tuple[object, ...] = ("load", self.name)
        if held["state"] == "sealed":
            words = ("replay", self.name, held["sequence"])
        return WindowOpen(
            pipeline=self.name,
            sequence=held["sequence"],
            run=run,
            renewed=holder.renewed(expires),
            outlook=holder.outlook(run, expires, *words),
        )

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
    """Compare checkpoint and newest window with what a decision was based on."""
    found = rows.read_pipeline(state)
    if (found.checkpoint, found.next_sequence) != (seen.checkpoint, seen.next_sequence):
        raise LedgerMoved(pipeline=seen.name, expected=seen.progress, found=found.progress)
