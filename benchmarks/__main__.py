"""Measure Tidegate beside other engines on the same files and cores, and print one Markdown table.

The engines stay alive and take turns, round by round, so that what else the machine does falls on
all of them; ratios are medians over rounds. Read ratios, not seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.contestants import CONTESTANTS, CORES, ON_SPARK
from benchmarks.measure import Contestant, Fingerprint, Round, fingerprint
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
    "polars-level-1": "the same at zstd level 1, Arrow's default",
}
_COMPARED = (
    ("tidegate-threads", "polars"),
    ("tidegate-threads", "polars-level-1"),
    ("tidegate-threads", "duckdb"),
    ("tidegate-spark", "spark"),
)


@dataclass(frozen=True)
class Result:
    """What one engine took."""

    cold: Round
    warm: list[Round]
    written_bytes: int
    files: int
    fingerprint: Fingerprint

    def median(self, value: str) -> float:
        """Give the median of a value over the warm rounds."""
        return float(statistics.median(getattr(item, value) for item in self.warm))


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    default = Path(tempfile.gettempdir()) / "tidegate-bench"
    parser.add_argument("--folder", type=Path, default=default)
    parser.add_argument("--only", nargs="+", choices=CONTESTANTS, default=list(CONTESTANTS))
    parser.add_argument("--rounds", type=int, default=5, help="warm rounds per engine")
    parser.add_argument("--rows", type=int, default=1_000_000, help="per file; there are ten files")
    parser.add_argument("--large", type=int, default=10, help="input of the memory test; 0: none")
    parser.add_argument("--keep", action="store_true", help="leave data and output in the folder")
    given = parser.parse_args()
    source = given.folder / f"orders-{given.rows}"
    size = make_orders(source, rows=given.rows)
    print(f"\n{10 * given.rows:,} rows, {size / _MEGABYTE:.0f} MB of zstd Parquet, {CORES} cores\n")
    # Apart, because an idle Spark lets its Python workers go after a minute.
    groups = [name for name in given.only if name not in ON_SPARK], list(ON_SPARK)
    found = {}
    for group in groups:
        names = [name for name in group if name in given.only]
        found |= _contest(names, source, given.folder, given.rounds)
    print("\n".join([*_table(found), "", *_ratios(found)]))
    _check_equal(found)
    if given.large:
        _memory(given.folder, source, given.large)
    seconds, files = plan_many_files(given.folder / "many")
    print(f"- Planning {files:,} files: {seconds:.2f} s.")
    if not given.keep:
        shutil.rmtree(given.folder)


def _contest(names: list[str], source: Path, folder: Path, rounds: int) -> dict[str, Result]:
    with contextlib.ExitStack() as running:
        engines, cold = {}, {}
        for name in names:
            engines[name] = running.enter_context(Contestant(name, source, folder / name))
            cold[name] = engines[name].cold()
        warm: dict[str, list[Round]] = {name: [] for name in names}
        for _ in range(rounds):
            for name, engine in engines.items():
                engine.forget()
                warm[name].append(engine.warm())
        return {
            name: Result(
                cold[name],
                warm[name],
                sum(path.stat().st_size for path in engine.written()),
                len(engine.written()),
                fingerprint(engine.written()),
            )
            for name, engine in engines.items()
        }


def _table(found: dict[str, Result]) -> list[str]:
    lines = [
        f"| {_TITLES[name]} | {item.cold.wall:.1f} | {item.median('wall'):.2f} "
        f"| {item.median('cpu'):.2f} | {item.median('peak_bytes') / _MEGABYTE:.0f} "
        f"| {item.written_bytes / _MEGABYTE:.0f} | {item.files} |"
        for name, item in found.items()
    ]
    head = "| engine | cold s | warm s | warm CPU s | peak MB | written MB | files |"
    return [head, "|---|---|---|---|---|---|---|", *lines]


def _ratios(found: dict[str, Result]) -> list[str]:
    lines = []
    for mine, other in _COMPARED:
        if {mine, other} <= found.keys():
            turns = list(zip(found[mine].warm, found[other].warm, strict=True))
            wall = statistics.median(theirs.wall / ours.wall for ours, theirs in turns)
            cpu = statistics.median(theirs.cpu / ours.cpu for ours, theirs in turns)
            cold = found[other].cold.wall / found[mine].cold.wall
            lines.append(
                f"- Speed of {_TITLES[mine]} where {_TITLES[other]} is 1: "
                f"warm {wall:.2f} by wall, {cpu:.2f} by CPU; cold {cold:.2f}."
            )
    return lines


def _check_equal(found: dict[str, Result]) -> None:
    """Stop if two engines wrote different rows."""
    expected = next(iter(found.values())).fingerprint
    different = [name for name, item in found.items() if item.fingerprint != expected]
    if different:
        sys.exit(f"Not the same rows as {next(iter(found))}: {', '.join(different)}")
    rows = sum(int(str(day[1])) for day in expected)
    print(f"- Rows of all engines are equal: {rows:,} in {len(expected)} days.")


def _memory(folder: Path, source: Path, times: int) -> None:
    """Show that memory does not grow with the input."""
    large = folder / f"orders-times-{times}"
    repeat_orders(large, source, times)
    for name in ("tidegate-threads", "polars"):
        peaks = []
        for rows in (source, large):
            with Contestant(name, rows, folder / "memory") as engine:
                peaks.append(engine.cold().peak_bytes / _MEGABYTE)
        print(
            f"- {_TITLES[name]}: peak {peaks[0]:.0f} MB, {peaks[1]:.0f} MB on {times}× the input."
        )


if __name__ == "__main__":
    main()
