"""The engines that run in Tidegate's own environment, each doing one job some times.

Run by `measure.py`, which watches this process and those it starts.
"""

from __future__ import annotations

import functools
import os
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.rounds import Contestants, do_rounds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.job import Job
    from benchmarks.rounds import Contestant, Work
    from tidegate.execute import Executor

CORES = len(os.sched_getaffinity(0))


@contextmanager
def tidegate_threads(job: Job) -> Iterator[Work]:
    """Plan and stage in this process: the data path up to files and commit messages."""
    from tidegate.execute.local import LocalExecutor

    yield lambda out: _stage(job, out, LocalExecutor())


@contextmanager
def tidegate_reading(job: Job) -> Iterator[Work]:
    """Do the same without copying a file."""
    with tidegate_threads(replace(job, copy_whole_files="never")) as work:
        yield work


@contextmanager
def tidegate_published(job: Job) -> Iterator[Work]:
    """All of it in this process: plan, stage, announce, gate, commit of every day that is over."""
    from benchmarks.pipelines import NOW, open_job
    from tidegate.execute.local import LocalExecutor
    from tidegate.model.run import Run

    def publish(out: Path) -> None:
        pipeline = open_job(job, out)
        pipeline.load(Run("bench", "bench"), NOW, lambda _: LocalExecutor())
        for outcome in pipeline.publish_all("bench", NOW):
            if outcome.state not in {"committed", "pending"}:
                sys.exit(f"{outcome}")

    yield publish


@contextmanager
def tidegate_upsert(job: Job) -> Iterator[Work]:
    """Take in changes of a table that stands, in this process: load and publish."""
    from benchmarks.standing import Standing
    from benchmarks.upserts import TIDEGATE, published_files, take_in

    standing = Standing.of(job, TIDEGATE)

    def publish(out: Path) -> None:
        standing.take(out)
        take_in(standing.current, Path(job.source))

    yield publish
    standing.hand_over(published_files(standing.current), job.key)


@contextmanager
def tidegate_spark(job: Job) -> Iterator[Work]:
    """Plan on the driver, stage in Spark tasks."""
    from tidegate.execute.spark import SparkExecutor

    with SparkExecutor(master=f"local[{CORES}]") as executor:
        yield lambda out: _stage(job, out, executor)


@contextmanager
def together(job: Job, engine: Contestant) -> Iterator[Work]:
    """Bring the rows of each partition together before they are written."""
    with engine(replace(job, shuffle=True)) as work:
        yield work


@contextmanager
def spark(job: Job) -> Iterator[Work]:
    """Use Spark's own reader, filter and partitioned writer, and its shuffle where asked for."""
    from pyspark.sql import SparkSession
    from pyspark.sql.functions import date_trunc, to_date

    session = (
        SparkSession.builder.master(f"local[{CORES}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.parquet.compression.codec", "zstd")
        .getOrCreate()
    )

    def write(out: Path) -> None:
        kept = session.read.parquet(job.source).filter(job.condition)
        if not job.partition_column:
            kept = kept.withColumn("dt", to_date(date_trunc(job.unit, job.event_time)))
        if job.shuffle:
            kept = kept.repartition(job.key)
        kept.write.partitionBy(job.key).parquet(str(out / "table"))

    yield write
    session.stop()


@contextmanager
def duckdb(job: Job) -> Iterator[Work]:
    """Use DuckDB's partitioned COPY."""
    import duckdb as engine

    connection = engine.connect()
    connection.execute(f"SET threads = {CORES}")
    connection.execute("SET TimeZone = 'UTC'")

    made = f", date_trunc('{job.unit}', {job.event_time})::DATE AS dt"
    made = "" if job.partition_column else made

    def copy(out: Path) -> None:
        out.mkdir(parents=True)
        connection.execute(
            f"COPY (SELECT *{made} FROM '{job.source}/*.parquet' WHERE {job.condition}) "
            f"TO '{out}/table' (FORMAT parquet, COMPRESSION zstd, PARTITION_BY ({job.key}))"
        )

    yield copy


@contextmanager
def polars(job: Job, level: int | None = None) -> Iterator[Work]:
    """Use polars' streaming scan and partitioned sink."""
    import polars as engine

    date = engine.col(job.event_time).cast(engine.Date)
    start = date if job.unit == "day" else date.dt.month_start()

    def sink(out: Path) -> None:
        kept = engine.scan_parquet(f"{job.source}/*.parquet").filter(engine.sql_expr(job.condition))
        if not job.partition_column:
            kept = kept.with_columns(dt=start)
        kept.sink_parquet(
            engine.PartitionBy(out / "table", key=job.key, include_key=False),
            mkdir=True,
            compression="zstd",
            compression_level=level,
        )

    yield sink


def _stage(job: Job, out: Path, executor: Executor) -> None:
    from benchmarks.pipelines import NOW, open_job
    from tidegate.model.run import Run

    pipeline = open_job(job, out)
    for planned in pipeline.plan(Run("bench", "bench"), NOW):
        pipeline.stage(planned, executor)


CONTESTANTS: Contestants = {
    "tidegate-threads": tidegate_threads,
    "tidegate-reading": tidegate_reading,
    "tidegate-published": tidegate_published,
    "tidegate-upsert": tidegate_upsert,
    "tidegate-together": functools.partial(together, engine=tidegate_threads),
    "tidegate-spark": tidegate_spark,
    "tidegate-spark-together": functools.partial(together, engine=tidegate_spark),
    "spark": spark,
    "spark-together": functools.partial(together, engine=spark),
    "duckdb": duckdb,
    "polars": polars,
    "polars-level-1": functools.partial(polars, level=1),
}


if __name__ == "__main__":
    do_rounds(CONTESTANTS, *sys.argv[1:])
