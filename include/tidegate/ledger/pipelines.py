"""Registering a pipeline, its checkpoint and its watermark."""

from __future__ import annotations

import operator
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlalchemy as sa

from tidegate.errors import TargetOwned
from tidegate.ledger import numbers, rows
from tidegate.ledger.connect import reading
from tidegate.ledger.identity import PLACE, check_identity
from tidegate.ledger.schema import contribution, pipeline, plan, window

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from tidegate.model.instant import Instant
    from tidegate.model.ledger_rows import PipelineState
    from tidegate.model.watermark import WatermarkStep


# Made once: to put a query together takes longer than to carry it out.
_STATE = sa.select(pipeline).where(pipeline.c.name == sa.bindparam("name"))


@dataclass(frozen=True)
class Pipelines:
    """The ledger's view of one pipeline as a whole."""

    engine: sa.Engine
    name: str

    def find(self) -> PipelineState | None:
        """Return the pipeline's state, None if this ledger does not know it."""
        with reading(self.engine) as connection:
            row = connection.execute(_STATE, {"name": self.name}).mappings().first()
        return None if row is None else rows.read_pipeline(row)

    def identity(self) -> Mapping[str, str] | None:
        """Return the keys that are registered under the name; None if it is not known."""
        registered = sa.select(pipeline.c.identity).where(pipeline.c.name == self.name)
        with reading(self.engine) as connection:
            found: Mapping[str, str] | None = connection.scalar(registered)
        return found

    def others(self) -> tuple[PipelineState, ...]:
        """Return the other pipelines of this ledger."""
        with reading(self.engine) as connection:
            query = sa.select(pipeline).where(pipeline.c.name != self.name)
            found = connection.execute(query.order_by(pipeline.c.name)).mappings().all()
        return tuple(map(rows.read_pipeline, found))

    def get(self) -> PipelineState:
        """Return the state of a registered pipeline."""
        state = self.find()
        if state is None:
            msg = f"pipeline {self.name} was not registered before its first step"
            raise AssertionError(msg)
        return state

    def register(
        self,
        identity: Mapping[str, str],
        target: str,
        now: datetime,
        ledger_id: str | None = None,
        same_place: Callable[[str, str], bool] = operator.eq,
    ) -> str:
        """Register the pipeline, or check it against the registered one.

        Args:
            identity: the keys that the pipeline's name stands for (design §4, configuration).
            target: the table root; one target has one pipeline.
            now: clock of the command.
            ledger_id: the id of a lost ledger that is restored; by default a new one.
            same_place: says of two paths whether they lead to one place, links followed.

        Returns:
            The ledger id, for `owner.json`.

        Raises:
            PipelineChanged: a key of the identity differs.
            TargetOwned: another pipeline of this ledger has the target.
        """
        with self.engine.begin() as connection:
            # Nothing is announced between reading the old identity and writing the new one.
            known = sa.select(pipeline).where(pipeline.c.name == self.name).with_for_update()
            row = connection.execute(known).mappings().first()
            if row is not None:
                if check_identity(connection, self.name, row["identity"], identity, same_place):
                    self._end_attempts(connection)
                if row["identity"] != dict(identity):
                    self._register_again(connection, identity)
                return str(row["ledger_id"])
            others = connection.execute(sa.select(pipeline.c.name, pipeline.c.target)).all()
            for other in others:
                if same_place(other.target, target):
                    raise TargetOwned(target=target, owner=other.name, pipeline=self.name)
            made = ledger_id or str(uuid.uuid4())
            connection.execute(
                sa.insert(pipeline).values(
                    name=self.name,
                    ledger_id=made,
                    target=target,
                    identity=dict(identity),
                    started=False,
                    next_sequence=1,
                    next_number=1,
                    first_fence=0,
                    registered_at=now,
                )
            )
            return made

    def check(self, identity: Mapping[str, str], same_place: Callable[[str, str], bool]) -> None:
        """Check a known pipeline against the registered one. Changes nothing.

        A key that `register` would correct is not an error.

        Raises:
            PipelineChanged: a key of the identity differs.
        """
        registered = sa.select(pipeline.c.identity).where(pipeline.c.name == self.name)
        with reading(self.engine) as connection:
            known = connection.scalar(registered)
            if known is not None:
                check_identity(connection, self.name, known, identity, same_place)

    def move(self, target: str, before: str, now: str) -> None:
        """Register another place of the target, and of the plans of a moved work directory.

        Args:
            target: the table root from now on.
            before: the work directory in which the plans were written.
            now: where it is from now on.
        """
        with self.engine.begin() as connection:
            mine = pipeline.c.name == self.name
            identity = connection.scalar(sa.select(pipeline.c.identity).where(mine)) or {}
            connection.execute(
                sa.update(pipeline)
                .where(mine)
                .values(target=target, identity={**identity, PLACE: target})
            )
            for table, column in ((plan, plan.c.uri), (contribution, contribution.c.messages_uri)):
                is_below = column.startswith(f"{before}/", autoescape=True)
                rest = sa.func.substr(column, len(before) + 1)
                connection.execute(
                    sa.update(table)
                    .where(table.c.pipeline == self.name, is_below)
                    .values({column: sa.literal(now) + rest})
                )

    def forget_unused(self, ledger_id: str) -> None:
        """Remove a registration if no window was ever taken for it."""
        taken = sa.select(window.c.sequence).where(window.c.pipeline == self.name)
        with self.engine.begin() as connection:
            connection.execute(
                sa.delete(pipeline).where(
                    pipeline.c.name == self.name,
                    pipeline.c.ledger_id == ledger_id,
                    ~sa.exists(taken),
                )
            )

    def start_at(self, boundary: Instant | None, source_identity: str) -> None:
        """Fix the source and where the first window begins, once; a second call changes nothing."""
        raw = rows.json_or_none(boundary)
        with self.engine.begin() as connection:
            connection.execute(
                sa.update(pipeline)
                .where(pipeline.c.name == self.name, pipeline.c.started == sa.false())
                .values(
                    started=True, first_start=raw, checkpoint=raw, source_identity=source_identity
                )
            )

    def advance_watermark(self, step: WatermarkStep, seen: WatermarkStep | None) -> bool:
        """Store a watermark that moved without rows, because the source is idle (design §7).

        Args:
            step: the watermark; it never goes back.
            seen: the step that it was computed from.

        Returns:
            False if a window was announced meanwhile: the source is not idle, and nothing was
            stored.

        Raises:
            LedgerMoved: the ledger was replaced by one that does not know the pipeline (Transient).
        """
        with self.engine.begin() as connection:
            if rows.read_pipeline(numbers.lock(connection, self.name)).watermark_step != seen:
                return False
            store_watermark(connection, self.name, step)
            return True

    def let_recording_end(self) -> None:
        """Wait until what is being recorded is recorded; what is recorded later begins after this.

        So a check inside a recording transaction finds every file that was there before the call,
        or its result is found by whoever reads the ledger after the call.

        Raises:
            LedgerMoved: the ledger was replaced by one that does not know the pipeline (Transient).
        """
        with self.engine.begin() as connection:
            numbers.lock(connection, self.name)

    def _end_attempts(self, connection: sa.Connection) -> None:
        """Prevent that anything staged for another identity is announced."""
        connection.execute(
            sa.update(window)
            .where(window.c.pipeline == self.name, window.c.state == "open")
            .values(attempt=window.c.attempt + 1, owner=None, expires=None)
        )

    def _register_again(self, connection: sa.Connection, identity: Mapping[str, str]) -> None:
        connection.execute(
            sa.update(pipeline).where(pipeline.c.name == self.name).values(identity=dict(identity))
        )


def store_watermark(connection: sa.Connection, name: str, step: WatermarkStep) -> None:
    """Write a watermark and how it was computed, inside the caller's transaction.

    It never goes back (PC-W04), even if another step was stored since this one was computed.
    """
    stored = step.not_before(rows.read_pipeline(numbers.lock(connection, name)).watermark_step)
    connection.execute(
        sa.update(pipeline)
        .where(pipeline.c.name == name)
        .values(watermark=stored.value, watermark_step=stored.to_json())
    )
