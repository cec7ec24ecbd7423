"""The jobs of the comparison, from what the tables' metadata says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.job import Job
from benchmarks.orders import KEPT_REGIONS, ORDER_SUMS
from benchmarks.peers.layout import TableFiles

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = ("order_id", "customer_id", "amount", "note", "region", "ordered_at")


def orders_of(warehouse: Path, name: str, *, incremental: bool = False) -> Job:
    """Read a table with a filter, whole or its last appends, and write by day."""
    table = TableFiles.of(warehouse, name)
    return Job(
        kind="iceberg",
        source=str(table.metadata),
        filter=KEPT_REGIONS,
        event_time="ordered_at",
        unit="day",
        sums=ORDER_SUMS,
        table=f"bench.{name}",
        warehouse=str(warehouse),
        start_after=table.before_window() if incremental else None,
    )


def changes_of(warehouse: Path, name: str) -> Job:
    """Read what a table's commits after its first one changed, and write it by day."""
    table = TableFiles.of(warehouse, name)
    kinds = ("INSERT", "DELETE")
    return Job(
        kind="iceberg",
        source=str(table.metadata),
        filter="",
        event_time="ordered_at",
        unit="day",
        sums=(*ORDER_SUMS, *(f"count(*) FILTER (_change_type = '{kind}')" for kind in kinds)),
        columns=COLUMNS,
        table=f"bench.{name}",
        warehouse=str(warehouse),
        mode="changelog",
        start_after=int(table.snapshots[0]["snapshot-id"]),
    )
