"""Read the changes of twenty commits, at two shares of changed files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.contest import Result, contest, equality, table, unequal
from benchmarks.peers.iceberg_job import changes_of
from benchmarks.peers.layout import CHANGE_COMMITS, CHANGED_SHARES
from benchmarks.peers.settings import CONTESTANTS, Settings
from benchmarks.peers.tables_read import excluded

if TYPE_CHECKING:
    from pathlib import Path

_TITLES = {
    "tidegate-threads": "Tidegate in one process, merge-on-read",
    "tidegate-spark": "Tidegate on Spark, merge-on-read",
    "iceberg-spark": "Spark's create_changelog_view, copy-on-write twin",
}


def changelogs(settings: Settings) -> list[str]:
    """Run all of it; gives Markdown."""
    names = [f"{kind}_{percent}" for percent in CHANGED_SHARES for kind in ("mor", "cow")]
    warehouse = settings.warehouse(settings.changed_rows, names)
    lines = ["", f"**Changelog**: {CHANGE_COMMITS} commits on {settings.changed_rows:,} rows"]
    found = {percent: _read(settings, warehouse, percent, lines) for percent in CHANGED_SHARES}
    for engine in found[1]:
        if all(engine in item for item in found.values()):
            few, many = (item[engine].median("cpu") for item in found.values())
            lines.append(
                f"- {_TITLES[engine]}: {many / few:.1f}× the CPU at fifty times the changed files."
            )
    return lines


def _read(settings: Settings, warehouse: Path, percent: int, lines: list[str]) -> dict[str, Result]:
    found: dict[str, Result] = {}
    failed: dict[str, str] = {}
    # Iceberg's own view refuses tables with delete files: Spark reads a twin without.
    for kind, engines in (("mor", CONTESTANTS), ("cow", ("iceberg-spark",))):
        job = changes_of(warehouse, f"{kind}_{percent}")
        for launches in settings.launches(engines):
            chosen = {
                name: item
                for name, item in launches.items()
                if name.startswith("tidegate") == (kind == "mor")
            }
            results, problems = contest(job, chosen, settings.folder / "out", settings.rounds)
            found |= results
            failed |= problems
    wrong = unequal(found)
    lines += [
        "",
        f"Each commit changes {percent} % of the files:",
        "",
        *table(found, _TITLES),
        "",
        equality({name: item for name, item in found.items() if name not in wrong}),
        *excluded(failed, wrong),
    ]
    return found
