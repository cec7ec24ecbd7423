"""The windows of one pipeline, from taking one to announcing what it brought (design §4)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import sqlalchemy as sa

from tidegate.ledger import numbers, rows
from tidegate.ledger.announcing import Announcement, Announcing
from tidegate.ledger.pipelines import store_watermark
from tidegate.ledger.schema import pipeline, window
from tidegate.ledger.taken_windows import TakenWindows
from tidegate.model.message import RunSummary

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from tidegate.model.partition import Partition
    from tidegate.model.plan import Window
    from tidegate.model.watermark import WatermarkStep


@dataclass(frozen=True)
class Windows(TakenWindows):
    """The windows of one pipeline.

    Failure: every method is one transaction; it happened or it did not. All may be repeated.
    """

    def reserve(self, sequence: int, attempt: int, plan_digest: str) -> int:
        """Reserve the number of an announce.

        Raises:
            FenceLost: a newer attempt took the window over, or the window is another one.
        """
        with self.engine.begin() as connection:
            locked = numbers.lock(connection, self.name)
            self._fenced(connection, sequence, attempt, plan_digest)
            return numbers.reserve_for_window(connection, locked, sequence)

    def note_seconds(self, sequence: int, attempt: int, stage: str, seconds: float) -> None:
        """Store how long a stage took, unless the process has lost the window."""
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

    def announce(
        self,
        announced: Announcement,
        now: datetime,
        check: Callable[[], None] = lambda: None,
    ) -> tuple[Partition, ...]:
        """Seal a window: contributions, checkpoint and watermark in one transaction (design §4).

        Announcing the same plan of a sealed window again changes nothing; another plan replaces the
        window's contributions, over the union of the old and the new partitions.

        Args:
            announced: what the window brought.
            now: clock of the step.
            check: called before anything is changed, while nothing else is recorded for the
                pipeline; what it raises ends the announce.

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
            check()
            numbers.record_for_window(connection, self.name, announced.sequence, announced.number)
            announcing = Announcing(connection, self.name)
            effective = announcing.replace_contributions(announced, now)
            late = sum(item.rows for item in effective if item.late and not item.kind.replaces)
            timed = rows.optional(RunSummary, held["summary"]) or RunSummary()
            aside = Counter[str]()
            for item in effective:
                if item.aside is not None:
                    aside[item.aside.value] += item.rows
            summary = replace(
                announced.summary,
                rows_late=late,
                rows_aside=dict(aside) or None,
                seconds=timed.seconds,
            )
            announcing.seal(announced, summary, now)
            if held["state"] == "open":
                self._move_on(connection, rows.read_window(held).window, announced.watermark)
            return tuple(item.partition for item in effective)

    def _move_on(self, connection: sa.Connection, taken: Window, step: WatermarkStep) -> None:
        """Move checkpoint and watermark, as far as a window does that."""
        if taken.moves_checkpoint:
            end = taken.range.end_inclusive
            connection.execute(
                sa.update(pipeline)
                .where(pipeline.c.name == self.name)
                .values(checkpoint=end.to_json())
            )
        if taken.kind.moves_checkpoint:
            store_watermark(connection, self.name, step)
