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
from typing import TYPE_CHECKING

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
from benchmarks.orders import days_job, make_orders, orders_job, repeat_files
from benchmarks.partitioned_rows import make_rows, partitioned_job
from benchmarks.planning import plan_many_files
from benchmarks.versions import measured_with

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.job import Job

TITLES = {
    "tidegate-threads": "Tidegate, data path in one process",
    "tidegate-reading": "the same, nothing copied",
    "tidegate-published": "Tidegate, loaded and published in one process",
    "tidegate-together": "the same, `shuffle_by_partition`",
    "tidegate-spark": "Tidegate on Spark",
    "tidegate-spark-together": "Tidegate on Spark, `shuffle_by_partition`",
    "spark": "Spark: read, filter, write.partitionBy",
    "spark-together": "Spark: the same after repartition(key)",
    "duckdb": "DuckDB: COPY … PARTITION_BY",
    "polars": "polars: scan, sink_parquet(PartitionBy)",
    "polars-level-1": "the same at zstd level 1, Arrow's default",
}
PARTITIONED = "partitioned"
_JOBS = {
    "orders": orders_job,
    "days": days_job,
    "lineitem": lineitem_job,
    PARTITIONED: partitioned_job,
}
_USUAL = (
    Compared("tidegate-threads", "polars", warm_goal=0.8),
    Compared("tidegate-threads", "polars-level-1"),
    Compared("tidegate-threads", "duckdb"),
    Compared("tidegate-spark", "spark", warm_goal=4, cold_goal=3),
)
_CASES = {
    "tidegate-reading": ("days",),
    "tidegate-together": (PARTITIONED,),
    "tidegate-spark-together": (PARTITIONED,),
    "spark-together": (PARTITIONED,),
}
"""The cases of engines that have nothing to say in others."""
_COMPARED = {
    "orders": _USUAL,
    "lineitem": _USUAL,
    "days": (
        Compared("tidegate-threads", "polars", warm_goal=3),
        Compared("tidegate-threads", "tidegate-reading"),
        Compared("tidegate-reading", "polars"),
        Compared("tidegate-published", "polars"),
        Compared("tidegate-spark", "spark", warm_goal=4, cold_goal=3),
    ),
    PARTITIONED: (
        Compared("tidegate-spark", "spark", warm_goal=2.5),
        Compared("tidegate-spark-together", "spark-together", warm_goal=2.5),
        Compared("tidegate-threads", "polars"),
        Compared("tidegate-threads", "duckdb"),
        Compared("tidegate-together", "tidegate-threads"),
    ),
}


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    default = Path(tempfile.gettempdir()) / "tidegate-bench"
    parser.add_argument("--folder", type=Path, default=default)
    parser.add_argument("--case", choices=_JOBS, default="orders")
    parser.add_argument("--only", nargs="+", choices=CONTESTANTS)
    parser.add_argument("--rounds", type=int, default=5, help="warm rounds per engine")
    parser.add_argument("--million-rows", type=int, default=10, help="in ten files")
    parser.add_argument("--partitions", type=int, default=100, help="of the case partitioned")
    parser.add_argument("--large", type=int, default=10, help="input of the memory test; 0: none")
    parser.add_argument("--keep", action="store_true", help="leave data and output in the folder")
    given = parser.parse_args()
    job, work = _job(given.case, given.folder, given.million_rows, given.partitions)
    source = Path(job.source)
    size = sum(path.stat().st_size for path in source.glob("*.parquet"))
    print(
        f"\n**{given.case}**, {given.million_rows} million rows, {size / MEGABYTE:.0f} MB of zstd "
        f"Parquet, {CORES} cores: {work}. {measured_with()}\n"
    )
    wanted = given.only or [name for name in CONTESTANTS if given.case in _CASES.get(name, _JOBS)]
    found: dict[str, Result] = {}
    # Apart, because an idle Spark lets its Python workers go after a minute.
    for on_spark in (False, True):
        names = [name for name in wanted if (name in ON_SPARK) == on_spark]
        results, failed = contest(
            job, {name: launch(name) for name in names}, given.folder, given.rounds
        )
        found |= results
        for problem in failed.values():
            sys.exit(problem)
    lines = [
        *table(found, TITLES),
        "",
        *ratios(found, TITLES, _COMPARED[given.case]),
        "",
        equality(found),
    ]
    if wrong := unequal(found):
        sys.exit(f"Not the same rows: {wrong}")
    print("\n".join(lines))
    if given.large:
        _memory(given.folder, source, given.large, _JOBS[given.case])
    if given.case == "orders":
        seconds, files = plan_many_files(given.folder / "many")
        print(f"- Planning {files:,} files: {seconds:.2f} s.")
    if not given.keep:
        shutil.rmtree(given.folder)


def _job(case: str, folder: Path, million_rows: int, partitions: int) -> tuple[Job, str]:
    """Make the data of a case unless it is there; gives the job, and says what it is."""
    if case == PARTITIONED:
        rows = make_rows(folder / case, million_rows * 1_000_000, partitions)
        return partitioned_job(rows), f"write to {partitions:,} partitions"
    made = folder / f"{case}-{million_rows}"
    if case == "lineitem":
        job = lineitem_job(make_lineitem(made, million_rows))
        return job, "keep three of seven ways to ship, write by month"
    if case == "days":
        job = days_job(make_orders(made, million_rows, by_day=True))
        return job, "write by day what is by day already"
    return orders_job(make_orders(made, million_rows)), "keep two of five regions, write by day"


def _memory(folder: Path, source: Path, times: int, make_job: Callable[[Path], Job]) -> None:
    """Show that memory does not grow with the input."""
    large = folder / f"{source.name}-times-{times}"
    repeat_files(large, source, times)
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
