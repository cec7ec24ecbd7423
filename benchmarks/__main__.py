"""Measure Tidegate beside other engines on the same files and cores, and print one Markdown table.

Ratios of one run count, not seconds: the machine is never as idle as one would like.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.contestants import CONTESTANTS, CORES, ON_SPARK
from benchmarks.measure import Measured, measure
from benchmarks.orders import make_orders, repeat_orders
from benchmarks.planning import plan_many_files

_MEGABYTE = 1_000_000
_TITLES = {
    "tidegate-threads": "Tidegate, data path in one process",
    "tidegate-published": "Tidegate, loaded and published in one process",
    "tidegate-spark": "Tidegate on Spark",
    "spark": "Spark: read, filter, write.partitionBy",
    "duckdb": "DuckDB: COPY … PARTITION_BY",
    "polars": "polars: scan, sink_parquet(PartitionBy)",
    "polars-level-1": "polars, zstd level 1 as Arrow's default",
}


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()) / "tidegate-bench"
    )
    parser.add_argument("--only", nargs="+", choices=CONTESTANTS, default=list(CONTESTANTS))
    parser.add_argument("--rounds", type=int, default=4, help="per engine; the first is cold")
    parser.add_argument("--rows", type=int, default=1_000_000, help="per file; there are ten files")
    parser.add_argument("--large", type=int, default=10, help="input of the memory test; 0: none")
    parser.add_argument("--keep", action="store_true", help="leave data and output in the folder")
    given = parser.parse_args()
    source = given.folder / f"orders-{given.rows}"
    size = make_orders(source, rows=given.rows)
    print(f"\n{10 * given.rows:,} rows, {size / _MEGABYTE:.0f} MB of zstd Parquet, {CORES} cores\n")
    found = {name: measure(name, source, given.folder / name, given.rounds) for name in given.only}
    print(_table(found))
    _check_equal(found)
    if given.large:
        _memory(given.folder, source, given.large)
    seconds, files = plan_many_files(given.folder / "many")
    print(f"Planning {files:,} files: {seconds:.2f} s.")
    if not given.keep:
        shutil.rmtree(given.folder)


def _table(found: dict[str, Measured]) -> str:
    head = (
        "| engine | cold s | warm s | CPU s (warm) | peak MB | written MB | files |\n"
        "|---|---|---|---|---|---|---|"
    )
    lines = [
        f"| {_TITLES[name]} | {item.cold.wall:.1f} | {item.warm.wall:.2f} | {item.warm.cpu:.2f} "
        f"| {item.warm.peak_bytes / _MEGABYTE:.0f} | {item.written_bytes / _MEGABYTE:.0f} "
        f"| {item.files} |"
        for name, item in found.items()
    ]
    return "\n".join([head, *lines, "", *_ratios(found)])


def _ratios(found: dict[str, Measured]) -> list[str]:
    lines = []
    for name, title in (("polars", "polars"), ("polars-level-1", "polars at zstd level 1")):
        if {"tidegate-threads", name} <= found.keys():
            mine, other = found["tidegate-threads"].warm, found[name].warm
            lines.append(
                f"- Speed of the data path, {title} = 1: "
                f"{other.wall / mine.wall:.2f} by wall, {other.cpu / mine.cpu:.2f} by CPU."
            )
    if found.keys() >= ON_SPARK:
        mine, other = found["tidegate-spark"], found["spark"]
        lines.append(
            f"- On Spark, Spark's own way = 1: cold {other.cold.wall / mine.cold.wall:.1f}, "
            f"warm {other.warm.wall / mine.warm.wall:.1f} by wall, "
            f"{other.warm.cpu / mine.warm.cpu:.1f} by CPU."
        )
    return lines


def _check_equal(found: dict[str, Measured]) -> None:
    """Stop if two engines wrote different rows."""
    expected = next(iter(found.values())).fingerprint
    different = [name for name, item in found.items() if item.fingerprint != expected]
    if different:
        sys.exit(f"Not the same rows as {next(iter(found))}: {', '.join(different)}")
    rows = sum(int(str(day[1])) for day in expected)
    print(f"\nRows of all engines are equal: {rows:,} in {len(expected)} days.")


def _memory(folder: Path, source: Path, times: int) -> None:
    """Show that memory does not grow with the input."""
    large = folder / f"orders-times-{times}"
    repeat_orders(large, source, times)
    for name in ("tidegate-threads", "polars"):
        one = measure(name, source, folder / "memory", 1).cold
        many = measure(name, large, folder / "memory", 1).cold
        print(
            f"{_TITLES[name]}: peak {one.peak_bytes / _MEGABYTE:.0f} MB at 1×, "
            f"{many.peak_bytes / _MEGABYTE:.0f} MB at {times}× ({many.wall:.1f} s)."
        )


if __name__ == "__main__":
    main()
