"""Read tables with a filter, whole and their last appends, and write by day: every engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.contest import (
    Compared,
    Result,
    contest,
    equality,
    ratios,
    table,
    unequal,
)
from benchmarks.peers.iceberg_job import orders_of
from benchmarks.peers.layout import ORDER_TABLES, TableFiles
from benchmarks.peers.settings import CONTESTANTS, Settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.job import Job

_POLARS_GOAL = {"plain": 0.8}
_POLARS_GOAL_WITH_DELETES = 0.6


def tables_read(settings: Settings) -> Iterator[str]:
    """Run all comparisons, and yield the Markdown of each as soon as it is finished."""
    warehouse = settings.warehouse(settings.rows, ORDER_TABLES)
    for name, title in ORDER_TABLES.items():
        files = TableFiles.of(warehouse, name).totals
        yield ""
        yield (
            f"**{title}**: {settings.rows:,} rows, {files['total-data-files']} data files, "
            f"{files['total-delete-files']} delete files"
        )
        yield from _read(settings, warehouse, name, incremental=False)
    yield ""
    yield "**without deletes**, read incrementally"
    # Of the other tables, rows of the last appends are deleted later: an append read refuses them.
    yield from _read(settings, warehouse, "plain", incremental=True)


def _read(settings: Settings, warehouse: Path, name: str, *, incremental: bool) -> list[str]:
    job = orders_of(warehouse, name, incremental=incremental)
    found, failed = run_all(settings, job)
    wrong = unequal(found)
    right = {engine: item for engine, item in found.items() if engine not in wrong}
    goal = _POLARS_GOAL.get(name, _POLARS_GOAL_WITH_DELETES)
    compared = (
        Compared("tidegate-spark", "iceberg-spark", warm_goal=4, cold_goal=3),
        Compared("tidegate-threads", "polars", warm_goal=goal),
        Compared("tidegate-threads", "pyiceberg"),
        Compared("tidegate-threads", "duckdb"),
    )
    return [
        "",
        "Its last five appends:" if incremental else "The whole table:",
        "",
        *table(right, CONTESTANTS),
        "",
        *ratios(right, CONTESTANTS, compared),
        "",
        equality(right),
        *excluded(failed, wrong),
    ]


def run_all(settings: Settings, job: Job) -> tuple[dict[str, Result], dict[str, str]]:
    """Let all contestants do a job, those on Spark last."""
    found: dict[str, Result] = {}
    failed: dict[str, str] = {}
    for launches in settings.launches(CONTESTANTS):
        results, problems = contest(job, launches, settings.folder / "out", settings.rounds)
        found |= results
        failed |= problems
    return found, failed


def excluded(failed: dict[str, str], wrong: dict[str, str]) -> list[str]:
    """Return which engines could not do the work, and which wrote other rows."""
    return [
        *(
            f"- {CONTESTANTS[name]} cannot: {text.strip().splitlines()[-1][:200]}"
            for name, text in failed.items()
        ),
        *(f"- {CONTESTANTS[name]} gives wrong rows: {text}." for name, text in wrong.items()),
    ]
