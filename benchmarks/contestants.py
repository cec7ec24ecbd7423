"""One engine doing the same work some times: keep two of five regions, write by day.

Run by `measure.py`, which watches this process and those it starts. A round begins when a file says
so and announces its end on standard output.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidegate.execute import Executor
    from tidegate.pipeline import Pipeline

Round = Callable[[Path, Path], None]
"""Source folder, output folder of the round."""

END = "@end"
CORES = len(os.sched_getaffinity(0))
NOW = datetime(2026, 4, 1, tzinfo=UTC)
_POLL_SECONDS = 0.002
_REGIONS = "region in ('eu', 'us')"

_PIPELINE = """\
name: {name}
source:
  kind: files
  path: {source}
  start: full
  read: {{filter: "{regions}"}}
event_time: ordered_at
target:
  path: {out}/table
  partition_by: {{dt: day(ordered_at)}}
"""


@contextmanager
def tidegate_threads() -> Iterator[Round]:
    """Plan and stage in this process: the data path up to files and commit messages."""
    from tidegate.execute.local import LocalExecutor

    yield lambda source, out: _stage(source, out, LocalExecutor())


@contextmanager
def tidegate_published() -> Iterator[Round]:
    """All of it in this process: plan, stage, announce, gate, commit of every day that is over."""
    from tidegate.execute.local import LocalExecutor
    from tidegate.model.run import Run

    def publish(source: Path, out: Path) -> None:
        pipeline = open_orders(source, out)
        pipeline.load(Run("bench", "bench"), NOW, lambda _: LocalExecutor())
        for outcome in pipeline.publish_all("bench", NOW):
            if outcome.state not in {"committed", "pending"}:
                sys.exit(f"{outcome}")

    yield publish


@contextmanager
def tidegate_spark() -> Iterator[Round]:
    """Plan on the driver, stage in Spark tasks."""
    from tidegate.execute.spark import SparkExecutor

    with SparkExecutor(master=f"local[{CORES}]") as executor:
        yield lambda source, out: _stage(source, out, executor)


@contextmanager
def spark() -> Iterator[Round]:
    """Use Spark's own reader, filter and partitioned writer."""
    from pyspark.sql import SparkSession
    from pyspark.sql.functions import to_date

    session = (
        SparkSession.builder.master(f"local[{CORES}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.parquet.compression.codec", "zstd")
        .getOrCreate()
    )

    def write(source: Path, out: Path) -> None:
        kept = session.read.parquet(str(source)).filter(_REGIONS)
        days = kept.withColumn("dt", to_date("ordered_at"))
        days.write.partitionBy("dt").parquet(str(out / "table"))

    yield write
    session.stop()


@contextmanager
def duckdb() -> Iterator[Round]:
    """Use DuckDB's partitioned COPY."""
    import duckdb as engine

    connection = engine.connect()
    connection.execute(f"SET threads = {CORES}")
    connection.execute("SET TimeZone = 'UTC'")

    def copy(source: Path, out: Path) -> None:
        out.mkdir(parents=True)
        connection.execute(
            f"COPY (SELECT *, ordered_at::DATE AS dt FROM '{source}/*.parquet' WHERE {_REGIONS}) "
            f"TO '{out}/table' (FORMAT parquet, COMPRESSION zstd, PARTITION_BY (dt))"
        )

    yield copy


@contextmanager
def polars(level: int | None = None) -> Iterator[Round]:
    """Use polars' streaming scan and partitioned sink."""
    import polars as engine

    def sink(source: Path, out: Path) -> None:
        kept = engine.scan_parquet(f"{source}/*.parquet").filter(engine.sql_expr(_REGIONS))
        kept.with_columns(dt=engine.col("ordered_at").dt.date()).sink_parquet(
            engine.PartitionBy(out / "table", key="dt", include_key=False),
            mkdir=True,
            compression="zstd",
            compression_level=level,
        )

    yield sink


def open_orders(source: Path, out: Path) -> Pipeline:
    """Make a pipeline of its own for one round: file, target, ledger."""
    from tidegate.pipeline import open_pipeline

    out.mkdir(parents=True)
    file = out / "orders.yaml"
    name = f"orders_{out.name}"
    file.write_text(_PIPELINE.format(name=name, source=source, out=out, regions=_REGIONS))
    return open_pipeline(file, ledger=f"sqlite:///{out}/ledger.db")


def _stage(source: Path, out: Path, executor: Executor) -> None:
    from tidegate.model.run import Run

    pipeline = open_orders(source, out)
    for planned in pipeline.plan(Run("bench", "bench"), NOW):
        pipeline.stage(planned, executor)


CONTESTANTS = {
    "tidegate-threads": tidegate_threads,
    "tidegate-published": tidegate_published,
    "tidegate-spark": tidegate_spark,
    "spark": spark,
    "duckdb": duckdb,
    "polars": polars,
    "polars-level-1": lambda: polars(1),
}
ON_SPARK = ("tidegate-spark", "spark")
PLAIN_JVM = frozenset({"spark"})
"""Started without the JVM options of `make setup`, which make Spark's own work slower once warm."""


def go_file(out: Path, number: int | None) -> Path:
    """Name the file that begins a round; None ends the contestant."""
    return out / ("go-end" if number is None else f"go-{number}")


def main(name: str, source: str, out: str) -> None:
    """Do a round whenever one is asked for."""
    folder, number = Path(out), 0
    with CONTESTANTS[name]() as work:
        while not go_file(folder, None).exists():
            if not go_file(folder, number).exists():
                time.sleep(_POLL_SECONDS)
                continue
            work(Path(source), folder / str(number))
            print(END, number, flush=True)
            number += 1


if __name__ == "__main__":
    main(*sys.argv[1:])
