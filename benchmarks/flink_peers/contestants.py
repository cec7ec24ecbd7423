"""Flink, doing one job some times: Parquet files into CSV by partition, as a batch job.

Runs in the environment that `make bench-flink` makes, where there is no Tidegate.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from benchmarks.rounds import Contestants, do_rounds

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.job import Job
    from benchmarks.rounds import Work

CORES = len(os.sched_getaffinity(0))
_COLUMNS = "id BIGINT, amount DOUBLE, text STRING, happened_at TIMESTAMP(6), part INT"
_SETTINGS = {
    "parallelism.default": str(CORES),
    "table.local-time-zone": "UTC",
    # The default of a cluster inside a process makes it sort on disk.
    "taskmanager.memory.managed.size": "1 gb",
}


@contextmanager
def flink(job: Job) -> Iterator[Work]:
    """Use Flink's own reader, and its sink of files."""
    from pyflink.common import Configuration
    from pyflink.table import EnvironmentSettings, TableEnvironment

    options = Configuration()
    for key, value in _SETTINGS.items():
        options.set_string(key, value)
    settings = EnvironmentSettings.new_instance().in_batch_mode().with_configuration(options)
    tables = TableEnvironment.create(settings.build())
    _declare(tables, "source", "", job.source, "parquet")

    def write(out: Path) -> None:
        tables.execute_sql("DROP TABLE IF EXISTS target")
        _declare(tables, "target", "PARTITIONED BY (part)", str(out), "csv")
        tables.execute_sql("INSERT INTO target SELECT * FROM source").wait()

    yield write


def _declare(tables: object, name: str, partitioned: str, path: str, form: str) -> None:
    tables.execute_sql(  # type: ignore[attr-defined]
        f"CREATE TABLE {name} ({_COLUMNS}) {partitioned} WITH ("
        f"'connector' = 'filesystem', 'path' = 'file://{path}', 'format' = '{form}')"
    )


CONTESTANTS: Contestants = {"flink": flink}

if __name__ == "__main__":
    do_rounds(CONTESTANTS, *sys.argv[1:])
