"""Measure Tidegate beside other engines on Iceberg tables, and print Markdown.

Spark with Iceberg, pyiceberg, DuckDB and polars run in an environment of their own; all engines get
the same tables and cores. Read ratios, not seconds.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.peers.changelogs import changelogs
from benchmarks.peers.dense import dense
from benchmarks.peers.environment import HERE, ICEBERG
from benchmarks.peers.planning import planning
from benchmarks.peers.settings import CONTESTANTS, Settings
from benchmarks.peers.tables_read import tables_read
from benchmarks.peers.upserted import upserted
from benchmarks.versions import peers_measured_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SUITES: dict[str, Callable[[Settings], Iterable[str]]] = {
    "tables": tables_read,
    "changelog": changelogs,
    "dense": dense,
    "planning": planning,
    "upserts": upserted,
}


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    default = Path(tempfile.gettempdir()) / "tidegate-bench-peers"
    parser.add_argument("--suites", nargs="+", choices=SUITES, default=list(SUITES))
    parser.add_argument("--folder", type=Path, default=default)
    parser.add_argument("--rows", type=int, default=20_000_000, help="of each table of orders")
    parser.add_argument("--changed-rows", type=int, default=10_000_000, help="of the changelog's")
    parser.add_argument("--upserted-rows", type=int, default=10_000_000, help="of the upserts'")
    parser.add_argument("--rounds", type=int, default=3, help="warm rounds per engine")
    parser.add_argument("--only", nargs="+", choices=CONTESTANTS, default=list(CONTESTANTS))
    parser.add_argument("--keep", action="store_true", help="leave the tables in the folder")
    given = parser.parse_args()
    settings = Settings(
        folder=given.folder,
        rows=given.rows,
        changed_rows=given.changed_rows,
        upserted_rows=given.upserted_rows,
        rounds=given.rounds,
        only=tuple(given.only),
    )
    print(peers_measured_with(HERE, f"Iceberg {ICEBERG}"))
    for name in given.suites:
        for line in SUITES[name](settings):
            print(line, flush=True)
    if not given.keep:
        shutil.rmtree(given.folder)


if __name__ == "__main__":
    main()
