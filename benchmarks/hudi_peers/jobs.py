"""The jobs of the comparison on Hudi tables."""

from __future__ import annotations

from benchmarks.job import Job
from benchmarks.orders import ORDER_SUMS

COLUMNS = ("order_id", "customer_id", "amount", "note", "region", "ordered_at", "ts")


def merge_of(table: str) -> Job:
    """Read a whole table, logs merged, and write it by day."""
    return Job(
        kind="hudi",
        source=table,
        filter="",
        event_time="ordered_at",
        unit="day",
        sums=(*ORDER_SUMS, "sum(ts)"),
        columns=COLUMNS,
        mode="snapshot",
    )


def window_of(table: str, start_after: str) -> Job:
    """Read what was written after an instant."""
    return Job(
        kind="hudi",
        source=table,
        filter="",
        event_time="ordered_at",
        unit="day",
        sums=(),
        mode="complete",
        start_after=start_after,
    )
