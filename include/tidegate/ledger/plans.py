"""The plans of windows: where they are, and whether they were announced (design §4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from tidegate.errors import LedgerMoved, WindowNotFound
from tidegate.ledger.connect import reading
from tidegate.ledger.schema import plan, window

if TYPE_CHECKING:
    from tidegate.model.plan import ScanPlan


# Made once: to put a query together takes longer than to carry it out.
_STATE = sa.select(plan.c.state).where(
    *(plan.c[key] == sa.bindparam(key) for key in ("pipeline", "window", "digest"))
)


@dataclass(frozen=True)
class Plans:
    """The plans of one pipeline's windows.

    Failure: every method is one transaction; it happened or it did not. All may be repeated.
    """

    engine: sa.Engine
    name: str

    def record(self, scan: ScanPlan, uri: str) -> None:
        """Record that a plan is in the work directory.

        Raises:
            LedgerMoved: the ledger was restored, or the window was dropped, since it was taken
                (Transient).
        """
        sequence = scan.window.sequence
        with self.engine.begin() as connection:
            taken = (
                sa.select(window.c.sequence)
                .where(window.c.pipeline == self.name, window.c.sequence == sequence)
                .with_for_update()
            )
            if connection.execute(taken).first() is None:
                raise LedgerMoved(
                    pipeline=self.name, expected=f"window {sequence}", found="no such window"
                )
            if plan_state(connection, self.name, sequence, scan.digest) is None:
                connection.execute(
                    sa.insert(plan).values(
                        pipeline=self.name,
                        window=sequence,
                        digest=scan.digest,
                        uri=uri,
                        fingerprint=dict(scan.fingerprint),
                        totals=scan.totals.to_json(),
                        state="planned",
                        planned_at=scan.planned_at,
                    )
                )

    def is_known(self, sequence: int, digest: str) -> bool:
        """Return whether the ledger knows of a plan of a window."""
        with reading(self.engine) as connection:
            return plan_state(connection, self.name, sequence, digest) is not None

    def uri(self, sequence: int) -> str | None:
        """Return the location of a window's effective plan, else of the newest; None without one.

        Raises:
            WindowNotFound: it was never taken.
        """
        effective = sa.select(window.c.plan_digest).where(
            window.c.pipeline == self.name, window.c.sequence == sequence
        )
        with reading(self.engine) as connection:
            held = connection.execute(effective).first()
            if held is None:
                raise WindowNotFound(pipeline=self.name, sequence=sequence)
            found: str | None = connection.scalar(select_uri(self.name, sequence, held.plan_digest))
        return found

    def was_announced(self, sequence: int, digest: str) -> bool:
        """Return whether a plan of a window is in effect, or ever was."""
        with reading(self.engine) as connection:
            return plan_state(connection, self.name, sequence, digest) == "staged"


def select_uri(pipeline: str, sequence: int, effective: str | None) -> sa.Select[Any]:
    """Select the location of a window's plan: the effective one, else the newest."""
    return (
        sa.select(plan.c.uri)
        .where(plan.c.pipeline == pipeline, plan.c.window == sequence)
        .order_by((plan.c.digest == effective).desc(), plan.c.planned_at.desc())
        .limit(1)
    )


def plan_state(connection: sa.Connection, pipeline: str, sequence: int, digest: str) -> str | None:
    """Read the state of a plan: `planned` or `staged`; None if the ledger does not know it."""
    mine = {"pipeline": pipeline, "window": sequence, "digest": digest}
    found: str | None = connection.scalar(_STATE, mine)
    return found
