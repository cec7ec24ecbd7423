"""Measure Tidegate beside other engines on Hudi tables, and print Markdown.

Spark with Hudi's bundle and hudi-rs run in an environment of their own; all engines get the same
tables and cores. Read ratios, not seconds.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.hudi_peers.environment import HERE, HUDI
from benchmarks.hudi_peers.suites import Settings, alone, merged, planning
from benchmarks.hudi_peers.upserted import upserted
from benchmarks.versions import peers_measured_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SUITES: dict[str, Callable[[Settings], Iterator[str]]] = {
    "merge": merged,
    "alone": alone,
    "planning": planning,
    "upserts": upserted,
}


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hudi_peers", description=__doc__)
    default = Path(tempfile.gettempdir()) / "tidegate-bench-hudi"
    parser.add_argument("--suites", nargs="+", choices=SUITES, default=list(SUITES))
    parser.add_argument("--folder", type=Path, default=default)
    parser.add_argument("--rows", type=int, default=2_000_000, help="of each merged table")
    parser.add_argument("--upserted-rows", type=int, default=10_000_000, help="of the upserts'")
    parser.add_argument("--rounds", type=int, default=3, help="warm rounds per engine")
    parser.add_argument("--keep", action="store_true", help="leave the tables in the folder")
    given = parser.parse_args()
    settings = Settings(given.folder, given.rows, given.rounds, given.upserted_rows)
    print(peers_measured_with(HERE, f"Hudi {HUDI}"))
    for name in given.suites:
        for line in SUITES[name](settings):
            print(line, flush=True)
    if not given.keep:
        shutil.rmtree(given.folder)


if __name__ == "__main__":
    main()
