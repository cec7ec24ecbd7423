"""Spark with Hudi's bundle, doing one job on a Hudi table some times.

Runs in the environment that `make bench-hudi` makes, where there is no Tidegate.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from benchmarks.hudi_peers.session import open_session
from benchmarks.rounds import Contestants, do_rounds

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.job import Job
    from benchmarks.rounds import Work


@contextmanager
def hudi_spark(job: Job) -> Iterator[Work]:
    """Use Hudi's own reader in Spark, and Spark's partitioned writer."""
    from pyspark.sql.functions import to_date

    session = open_session()

    def write(out: Path) -> None:
        rows = session.read.format("hudi").load(job.source).select(*job.columns)
        dated = rows.withColumn("dt", to_date(job.event_time))
        dated.write.partitionBy("dt").parquet(str(out / "table"))

    yield write
    session.stop()


CONTESTANTS: Contestants = {"hudi-spark": hudi_spark}


if __name__ == "__main__":
    do_rounds(CONTESTANTS, *sys.argv[1:])
