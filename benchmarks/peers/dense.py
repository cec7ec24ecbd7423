"""Read one small file of very many rows: splits, first batch, memory of a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.contest import MEGABYTE
from benchmarks.peers.iceberg_job import orders_of
from benchmarks.peers.layout import DENSE_ROWS, TableFiles
from benchmarks.peers.lone import run_alone

if TYPE_CHECKING:
    from benchmarks.peers.settings import Settings

_TITLES = {"tidegate": "Tidegate, one split of the plan", "pyiceberg": "pyiceberg, the whole file"}


def dense(settings: Settings) -> list[str]:
    """Run all of it; gives Markdown."""
    warehouse = settings.warehouse(settings.rows, ["dense"])
    size = int(TableFiles.of(warehouse, "dense").totals["total-files-size"])
    job = orders_of(warehouse, "dense")
    lines = []
    splits = 0
    for work, title in _TITLES.items():
        found = run_alone(work, job, settings.folder / "out")
        splits = int(found.get("splits", splits))
        lines.append(
            f"| {title} | {found['first']:.3f} | {found['all']:.2f} | {found['rows']:,.0f} "
            f"| {found['peak_bytes'] / MEGABYTE:.0f} |"
        )
    return [
        "",
        f"**A file of {DENSE_ROWS:,} rows** in {size / MEGABYTE:.1f} MB, filter kept; Tidegate "
        f"makes {splits} splits of it (goals: at least 4, first batch < 0.05 s, < 300 MB)",
        "",
        "| reader | first batch s | all s | rows | peak MB |",
        "|---|---|---|---|---|",
        *lines,
    ]
