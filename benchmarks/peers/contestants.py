"""The peers, each doing one job on an Iceberg table some times.

Runs in the environment that `make bench-peers` makes, where there is no Tidegate.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.foreign_session import CORES
from benchmarks.peers.layout import UPSERTED, UPSERTED_TABLE
from benchmarks.peers.session import open_session
from benchmarks.rounds import Contestants, do_rounds
from benchmarks.standing import Standing

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, Row, SparkSession

    from benchmarks.job import Job
    from benchmarks.rounds import Work


class CannotDo(Exception):
    """An engine has no way to do a job."""


@contextmanager
def iceberg_spark(job: Job) -> Iterator[Work]:
    """Use Iceberg's own reader in Spark, and Spark's partitioned writer."""
    session = open_session(Path(job.warehouse))
    if job.mode == "changelog":
        read = _changelog
    elif job.start_after is not None:
        read = _appended
    else:
        read = _whole
    yield lambda out: _write_by_day(read(session, job), job, out)
    session.stop()


@contextmanager
def iceberg_merge(job: Job) -> Iterator[Work]:
    """Merge changes into a table that stands, copy-on-write."""
    standing = Standing.of(job, UPSERTED)
    session = open_session(standing.current)
    # Each round finds the table as it stood.
    session.conf.set("spark.sql.catalog.lake.cache-enabled", "false")

    def merge(out: Path) -> None:
        standing.take(out)
        session.sql(
            f"MERGE INTO lake.{UPSERTED_TABLE} AS standing USING parquet.`{job.source}` AS changes "
            "ON standing.order_id = changes.order_id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    yield merge
    files = session.sql(f"SELECT content, file_path FROM lake.{UPSERTED_TABLE}.files").collect()
    session.stop()
    standing.hand_over((_data_file(file) for file in files), job.key)


@contextmanager
def pyiceberg(job: Job) -> Iterator[Work]:
    """Use pyiceberg's scan as a stream of batches, and Arrow's partitioned writer."""
    import pyarrow as pa
    import pyarrow.dataset as ds
    from pyiceberg.table import StaticTable

    _refuse_changelog(job)
    pa.set_cpu_count(CORES)
    table = StaticTable.from_metadata(job.source)

    def write(out: Path) -> None:
        if job.start_after is None:
            scan = table.scan(row_filter=job.filter)
        else:
            scan = table.incremental_append_scan(
                row_filter=job.filter, from_snapshot_id_exclusive=job.start_after
            )
        batches = scan.to_arrow_batch_reader()
        schema = batches.schema.append(pa.field("dt", pa.date32()))
        ds.write_dataset(
            (_with_day(batch, job) for batch in batches),
            out / "table",
            schema=schema,
            format="parquet",
            partitioning=ds.partitioning(pa.schema([schema.field("dt")]), flavor="hive"),
            file_options=ds.ParquetFileFormat().make_write_options(compression="zstd"),
        )

    yield write


@contextmanager
def duckdb(job: Job) -> Iterator[Work]:
    """Use DuckDB's Iceberg extension and partitioned COPY."""
    import duckdb as engine

    _refuse_changelog(job)
    _refuse_window(job)
    connection = engine.connect()
    for name in ("avro", "iceberg"):
        connection.execute(f"LOAD '{_duckdb_extension(name)}'")
    connection.execute(f"SET threads = {CORES}")
    connection.execute("SET TimeZone = 'UTC'")

    def copy(out: Path) -> None:
        out.mkdir(parents=True)
        connection.execute(
            f"COPY (SELECT *, {job.event_time}::DATE AS dt FROM iceberg_scan('{job.source}') "
            f"WHERE {job.filter}) "
            f"TO '{out}/table' (FORMAT parquet, COMPRESSION zstd, PARTITION_BY (dt))"
        )

    yield copy


@contextmanager
def polars(job: Job) -> Iterator[Work]:
    """Use polars' streaming scan of Iceberg tables and partitioned sink."""
    import polars as engine

    _refuse_changelog(job)

    def sink(out: Path) -> None:
        found = engine.scan_iceberg(job.source, from_snapshot_id_exclusive=job.start_after)
        kept = found.filter(engine.sql_expr(job.filter))
        kept.with_columns(dt=engine.col(job.event_time).dt.date()).sink_parquet(
            engine.PartitionBy(out / "table", key="dt", include_key=False),
            mkdir=True,
            compression="zstd",
        )

    yield sink


def _data_file(file: Row) -> Path:
    if file.content:
        msg = f"{file.file_path} is a delete file"
        raise CannotDo(msg)
    return Path(file.file_path.removeprefix("file:"))


def _whole(session: SparkSession, job: Job) -> DataFrame:
    return session.table(f"lake.{job.table}")


def _appended(session: SparkSession, job: Job) -> DataFrame:
    reader = session.read.option("start-snapshot-id", str(job.start_after))
    return reader.table(f"lake.{job.table}")


def _changelog(session: SparkSession, job: Job) -> DataFrame:
    session.sql(
        f"CALL lake.system.create_changelog_view(table => '{job.table}', "
        f"options => map('start-snapshot-id', '{job.start_after}'), changelog_view => 'changes')"
    )
    return session.table("changes").select(*job.columns, "_change_type")


def _write_by_day(rows: DataFrame, job: Job, out: Path) -> None:
    from pyspark.sql.functions import to_date

    kept = rows.filter(job.filter) if job.filter else rows
    dated = kept.withColumn("dt", to_date(job.event_time))
    dated.write.partitionBy("dt").parquet(str(out / "table"))


def _with_day(batch: pa.RecordBatch, job: Job) -> pa.RecordBatch:
    import pyarrow as pa

    days = batch.column(job.event_time).cast(pa.timestamp("us")).cast(pa.date32(), safe=False)
    return batch.append_column("dt", days)


def _duckdb_extension(name: str) -> Path:
    """Find an extension that was installed as a package; DuckDB checks its signature."""
    import duckdb_ext

    (folder,) = duckdb_ext.__path__
    (found,) = Path(folder).rglob(f"{name}.duckdb_extension")
    return found


def _refuse_changelog(job: Job) -> None:
    if job.mode == "changelog":
        msg = "reads no changelogs"
        raise CannotDo(msg)


def _refuse_window(job: Job) -> None:
    if job.start_after is not None:
        msg = "reads no windows of snapshots"
        raise CannotDo(msg)


CONTESTANTS: Contestants = {
    "iceberg-spark": iceberg_spark,
    UPSERTED: iceberg_merge,
    "pyiceberg": pyiceberg,
    "duckdb": duckdb,
    "polars": polars,
}


if __name__ == "__main__":
    do_rounds(CONTESTANTS, *sys.argv[1:])
