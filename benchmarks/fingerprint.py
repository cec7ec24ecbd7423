"""Sum up what an engine wrote, so that equal rows give equal sums, whoever wrote them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import duckdb

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.job import Job

Fingerprint = tuple[tuple[object, ...], ...]
"""Per partition: its value, rows, the job's sums; equal for equal rows."""


def fingerprint(files: list[Path], job: Job) -> Fingerprint:
    """Sum up the rows of each partition, its value taken from the path alone."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        found = connection.execute(
            f"""
            SELECT left(regexp_extract(filename, '/{job.key}=([^/]+)', 1), {job.key_characters})
                       AS value, count(*), {", ".join(job.sums)}
            FROM read_parquet(?, filename = true, hive_partitioning = false)
            GROUP BY value ORDER BY value
            """,
            [[os.fspath(path) for path in files]],
        )
        return tuple(found.fetchall())


def row_count(found: Fingerprint) -> int:
    """Give the rows of all partitions."""
    return sum(int(str(partition[1])) for partition in found)
