"""A plan whose window was given up, written to a file before the ledger drops the window."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tidegate.model.plan import Window
from tidegate.model.wire import Value


@dataclass(frozen=True)
class AbandonedPlan(Value):
    """The content of `abandoned.json`: nothing that was staged by the plan ever counts."""

    pipeline: str
    window: Window
    plan_digest: str
    number: int
    """The number that orders it among all records: an announce of the plan with a lower one was
    written by a process that had lost the window."""
    by: str
    comment: str
    abandoned_at: datetime
