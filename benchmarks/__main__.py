"""Measure Tidegate beside other engines on the same files and cores, and print Markdown.

The engines stay alive and take turns, round by round, so that what else the machine does falls on
all of them; ratios are medians over rounds. Read ratios, not seconds.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.contest import (
    MEGABYTE,
    Compared,
    Result,
    contest,
    equality,
    ratios,
    table,
    unequal,
)
from benchmarks.contestants import CONTESTANTS, CORES
from benchmarks.launching import ON_SPARK, launch
from benchmarks.lineitem import lineitem_job, make_lineitem
from benchmarks.measure import Contestant
from benchmarks.orders import make_orders, orders_job, repeat_files
from benchmarks.planning import plan_many_files
from benchmarks.versions import measured_with

TITLES = {
    "tidegate-threads": "Tidegate, data path in one process",
    "tidegate-published": "Tidegate, loaded and published in one process",
    "tidegate-spark": "Tidegate on Spark",
    "spark": "Spark: read, filter, write.partitionBy",
    "duckdb": "DuckDB: COPY … PARTITION_BY",
    "polars": "polars: scan, sink_parquet(PartitionBy)",
    "polars-level-1": "the same at zstd level 1, Arrow's default",
}
_COMPARED = (
    Compared("tidegate-threads", "polars", warm_goal=0.8),
    Compared("tidegate-threads", "polars-level-1"),
    Compared("tidegate-threads", "duckdb"),
    Compared("tidegate-spark", "spark", warm_goal=4, cold_goal=3),
)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    default = Path(tempfile.gettempdir()) / "tidegate-bench"
    parser.add_argument("--folder", type=Path, default=default)
    parser.add_argument("--case", choices=("orders", "lineitem"), default="orders")
    parser.add_argument("--only", nargs="+", choices=CONTESTANTS, default=list(CONTESTANTS))
    parser.add_argument("--rounds", type=int, default=5, help="warm rounds per engine")
    parser.add_argument("--million-rows", type=int, default=10, help="in ten files")
    parser.add_argument("--large", type=int, default=10, help="input of the memory test; 0: none")
    parser.add_argument("--keep", action="store_true", help="leave data and output in the folder")
    given = parser.parse_args()
    if given.case == "orders":
        source = make_orders(given.folder / f"orders-{given.million_rows}", given.million_rows)
        job, work = orders_job(source), "keep two of five regions, write by day"
    else:
        made = given.folder / f"tpch-{given.million_rows}"
        job = lineitem_job(source := make_lineitem(made, given.million_rows))
        work = "keep three of seven ways to ship, write by month"
    size = sum(path.stat().st_size for path in source.glob("*.parquet"))
    print(
        f"\n**{given.case}**, {given.million_rows} million rows, {size / MEGABYTE:.0f} MB of zstd "
        f"Parquet, {CORES} cores: {work}. {measured_with()}\n"
    )
    found: dict[str, Result] = {}
    # Apart, because an idle Spark lets its Python workers go after a minute.
    for on_spark in (False, True):
        names = [name for name in given.only if (name in ON_SPARK) == on_spark]
        results, failed = contest(
            job, {name: launch(name) for name in names}, given.folder, given.rounds
        )
        found |= results
        for problem in failed.values():
            sys.exit(problem)
    lines = [*table(found, TITLES), "", *ratios(found, TITLES, _COMPARED), "", equality(found)]
    if wrong := unequal(found):
        sys.exit(f"Not the same rows: {wrong}")
    print("\n".join(lines))
    if given.large:
        _memory(given.folder, source, given.large)
    if given.case == "orders":
        seconds, files = plan_many_files(given.folder / "many")
        print(f"- Planning {files:,} files: {seconds:.2f} s.")
    if not given.keep:
        shutil.rmtree(given.folder)


def _memory(folder: Path, source: Path, times: int) -> None:
    """Show that memory does not grow with the input."""
    large = folder / f"{source.name}-times-{times}"
    repeat_files(large, source, times)
    make_job = orders_job if source.name.startswith("orders") else lineitem_job
    path = folder / "memory.json"
    for name in ("tidegate-threads", "polars"):
        peaks = []
        for rows in (source, large):
            make_job(rows).write(path)
            with Contestant(name, launch(name), path, folder / "memory") as engine:
                peaks.append(engine.cold().peak_bytes / MEGABYTE)
        print(f"- {TITLES[name]}: peak {peaks[0]:.0f} MB, {peaks[1]:.0f} MB on {times}× the input.")


if __name__ == "__main__":
    main()
