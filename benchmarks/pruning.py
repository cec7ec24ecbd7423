"""Measure what `target.sort_by` saves readers who look for few values, and what it costs to write.

`python -m benchmarks.pruning --folder FOLDER --million-rows N`
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq

from benchmarks.contest import MEGABYTE
from benchmarks.orders import days_job, make_orders
from benchmarks.pipelines import NOW, open_job
from tidegate.execute.local import LocalExecutor
from tidegate.model.run import Run

COLUMN = "customer_id"
_CUSTOMERS = 2_000_000
_LOOKS = 20


@dataclass(frozen=True)
class Written:
    """One way to write the rows."""

    files: list[Path]
    cpu_seconds: float

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(path.stat().st_size for path in self.files)


def write(source: Path, out: Path, sort_by: tuple[str, ...]) -> Written:
    """Stage all rows by day."""
    job = replace(days_job(source), copy_whole_files="never", shuffle=True, sort_by=sort_by)
    pipeline = open_job(job, out)
    started = time.process_time()
    for planned in pipeline.plan(Run("bench", "bench"), NOW):
        pipeline.stage(planned, LocalExecutor())
    used = time.process_time() - started
    return Written(sorted(out.rglob("dt=*/*.parquet")), used)


def admitted(files: list[Path], value: int) -> tuple[int, int]:
    """Count the row groups whose statistics admit a value, and all of them."""
    found = every = 0
    for path in files:
        metadata = pq.read_metadata(path)
        names = [metadata.schema.column(at).name for at in range(metadata.num_columns)]
        column = names.index(COLUMN)
        for number in range(metadata.num_row_groups):
            bounds = metadata.row_group(number).column(column).statistics
            found += bounds.min <= value <= bounds.max
            every += 1
    return found, every


def look_up(files: list[Path], value: int) -> tuple[float, int]:
    """Sum up the rows of one value with DuckDB; gives the seconds and the rows."""
    started = time.perf_counter()
    with duckdb.connect() as connection:
        (rows,) = connection.execute(
            f"SELECT count(note) FROM read_parquet(?) WHERE {COLUMN} = ?",
            [[str(path) for path in files], value],
        ).fetchone() or (0,)
    return time.perf_counter() - started, rows


def main() -> None:
    """Print what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pruning", description=__doc__)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--million-rows", type=int, default=20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        source = make_orders(folder / "rows", given.million_rows)
        ways = {
            "as it comes": write(source, folder / "plain", ()),
            f"`sort_by: {COLUMN}`": write(source, folder / "sorted", (COLUMN,)),
        }
        values = np.random.default_rng(1).integers(0, _CUSTOMERS, _LOOKS).tolist()
        print("| files | CPU s to write | MB | row groups read of all | ms to look up |")
        print("|---|---|---|---|---|")
        answers = []
        for title, way in ways.items():
            found = [admitted(way.files, value) for value in values]
            looks = [look_up(way.files, value) for value in values]
            answers.append([rows for _, rows in looks])
            share = statistics.mean(some for some, _ in found)
            milliseconds = statistics.median(seconds for seconds, _ in looks) * 1_000
            print(
                f"| {title} | {way.cpu_seconds:.1f} | {way.bytes / MEGABYTE:.0f} "
                f"| {share:.1f} of {found[0][1]} | {milliseconds:.0f} |"
            )
        if answers[0] != answers[1]:
            sys.exit(f"Not the same rows: {answers}")


if __name__ == "__main__":
    main()
