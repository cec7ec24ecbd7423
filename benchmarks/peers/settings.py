"""What one run of the comparison was asked for, and how its contestants are started."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.launching import launch
from benchmarks.peers.environment import ON_SPARK as PEERS_ON_SPARK
from benchmarks.peers.environment import peer_launch, run_on_spark
from benchmarks.peers.layout import is_made

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from benchmarks.measure import Launch

CONTESTANTS = {
    "tidegate-threads": "Tidegate, data path in one process",
    "tidegate-spark": "Tidegate on Spark",
    "iceberg-spark": "Spark with Iceberg",
    "pyiceberg": "pyiceberg",
    "duckdb": "DuckDB",
    "polars": "polars",
}
_OURS = ("tidegate-threads", "tidegate-spark")
_ON_SPARK = ("tidegate-spark", *PEERS_ON_SPARK)


@dataclass(frozen=True)
class Settings:
    """What was asked for."""

    folder: Path
    rows: int
    """Of each table of orders."""
    changed_rows: int
    """Of each table of the changelog."""
    upserted_rows: int
    """Of the table that changes are merged into."""
    rounds: int
    only: tuple[str, ...]
    """Contestants."""

    def launches(self, names: Iterable[str]) -> tuple[dict[str, Launch], dict[str, Launch]]:
        """Say how contestants are started: those without Spark, and those on it.

        Apart, because an idle Spark lets its Python workers go after a minute.
        """
        chosen = {
            name: launch(name) if name in _OURS else peer_launch(name)
            for name in names
            if name in self.only
        }
        without = {name: item for name, item in chosen.items() if name not in _ON_SPARK}
        return without, {name: item for name, item in chosen.items() if name in _ON_SPARK}

    def warehouse(self, rows: int, names: Iterable[str]) -> Path:
        """Give the folder of tables of a size, made now where they are missing."""
        folder = self.folder / f"lake-{rows}"
        missing = [name for name in names if not is_made(folder, name)]
        if missing:
            folder.mkdir(parents=True, exist_ok=True)
            run_on_spark("make_tables.py", str(folder), str(rows), *missing)
        return folder
