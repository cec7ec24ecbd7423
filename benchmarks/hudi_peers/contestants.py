"""Spark with Hudi's bundle, doing one job on a Hudi table some times.

Runs in the environment that `make bench-hudi` makes, where there is no Tidegate.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

from benchmarks.hudi_peers.layout import UPSERT_OPTIONS, UPSERTED
from benchmarks.hudi_peers.session import open_session
from benchmarks.rounds import Contestants, do_rounds
from benchmarks.standing import Standing

if TYPE_CHECKING:
    from collections.abc import Iterator

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


@contextmanager
def hudi_upsert(job: Job) -> Iterator[Work]:
    """Upsert changes into a table that stands, copy-on-write."""
    session = open_session()
    standing = Standing.of(job, UPSERTED)

    def upsert(out: Path) -> None:
        standing.take(out)
        changes = session.read.parquet(job.source)
        # Not by the link: Hudi's own caches are by path.
        to = str(standing.current.resolve())
        changes.write.format("hudi").options(**UPSERT_OPTIONS).mode("append").save(to)

    yield upsert
    table = session.read.format("hudi").load(str(standing.current.resolve()))
    files = [Path(unquote(urlparse(file).path)) for file in table.inputFiles()]
    session.stop()
    standing.hand_over(files, job.key)


CONTESTANTS: Contestants = {"hudi-spark": hudi_spark, UPSERTED: hudi_upsert}


if __name__ == "__main__":
    do_rounds(CONTESTANTS, *sys.argv[1:])
