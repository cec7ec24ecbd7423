"""Measure Flink's batch sink with CSV, and print Markdown; the others are in `benchmarks`.

Read ratios to what was measured beside it, not seconds.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import duckdb

from benchmarks.flink_peers.environment import FLINK, flink_launch
from benchmarks.job import Job
from benchmarks.measure import Contestant
from benchmarks.partitioned_rows import FOLDER, PARTITIONS, ROWS, make_rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SUMS = "count(*), sum(id), sum(round(amount * 100)::BIGINT), sum(epoch_us(happened_at) % 1000003)"

_LONGEST_ROUND_SECONDS = 1800.0


def flink_job(source: Path) -> Job:
    """Write everything by the column `part`."""
    return Job(
        kind="files",
        source=str(source),
        filter="",
        event_time="happened_at",
        unit="day",
        sums=(SUMS,),
    )


def measure(folder: Path, rows: int, partitions: int, rounds: int) -> Iterator[str]:
    """Do some rounds; one line of a table."""
    source = make_rows(folder, rows, partitions)
    job, out = folder / "flink-job.json", folder / "flink"
    flink_job(source).write(job)
    with Contestant("flink", flink_launch(), job, out, _LONGEST_ROUND_SECONDS) as engine:
        cold = engine.cold()
        laps = []
        for _ in range(rounds):
            engine.forget()
            laps.append(engine.warm())
        warm = min(laps, key=lambda lap: lap.wall, default=cold)
        files = [path for path in (out / str(rounds)).rglob("*") if path.is_file()]
        said = _as_read(source) == _as_written(out / str(rounds))
    yield (
        f"| {partitions:,} | {cold.wall:.1f} | {warm.wall:.2f} | {warm.cpu:.2f} "
        f"| {warm.peak_bytes >> 20} | {len(files)} | {'same rows' if said else 'OTHER ROWS'} |"
    )


def _as_read(source: Path) -> tuple[object, ...] | None:
    return duckdb.execute(f"SELECT {SUMS} FROM '{source}/*.parquet'").fetchone()


def _as_written(table: Path) -> tuple[object, ...] | None:
    """Sum up what stands there: Flink leaves partition columns out of its files."""
    columns = "{'id': 'BIGINT', 'amount': 'DOUBLE', 'text': 'VARCHAR', 'happened_at': 'TIMESTAMP'}"
    return duckdb.execute(
        f"SELECT {SUMS} FROM read_csv('{table}/part=*/*', header = false, columns = {columns}, "
        "hive_partitioning = false)"
    ).fetchone()


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flink_peers", description=__doc__)
    parser.add_argument("--folder", type=type(FOLDER), default=FOLDER)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--partitions", type=int, nargs="+", default=list(PARTITIONS))
    parser.add_argument("--rounds", type=int, default=1, help="warm rounds")
    given = parser.parse_args()
    print(f"Flink {FLINK}, batch sink of files, CSV, {given.rows:,} rows:\n")
    print("| partitions | cold s | warm s | warm CPU s | peak MB | files | |")
    print("|---|---|---|---|---|---|---|")
    for partitions in given.partitions:
        for line in measure(given.folder, given.rows, partitions, given.rounds):
            print(line, flush=True)


if __name__ == "__main__":
    main()
