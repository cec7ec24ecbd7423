"""Make the Hudi tables of the comparison with Spark, in the peers' environment.

Run by `spark-submit`; a table that is there already is left alone.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.hudi_peers.layout import (
    GROUPS,
    LOG_SHARES,
    MANY_GROUPS,
    UPDATED,
    is_made,
    mark_made,
    table_folder,
)
from benchmarks.hudi_peers.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DAYS = 10
_FIRST_SECOND = 1_772_323_200
"""2026-03-01T00:00Z."""
_QUIET = {
    "hoodie.table.name": "orders",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "order_id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.metadata.enable": "false",
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.index.type": "SIMPLE",
    "hoodie.logfile.data.block.format": "avro",
    "hoodie.parquet.compression.codec": "zstd",
    "hoodie.parquet.max.file.size": str(1 << 30),
}


def merged(session: SparkSession, folder: Path, rows: int, commits: int) -> None:
    """Write orders into a few base files, and updates of one order in five into logs."""
    options = _QUIET | {
        "hoodie.datasource.write.keygenerator.class": (
            "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
        ),
        "hoodie.bulkinsert.sort.mode": "NONE",
        "hoodie.bulkinsert.shuffle.parallelism": str(GROUPS),
        "hoodie.upsert.shuffle.parallelism": str(GROUPS),
    }
    _write(_orders(session, 0, rows, 1, rows, 0), options, folder, "bulk_insert")
    for commit in range(1, commits + 1):
        updated = _orders(session, commit % UPDATED, rows, UPDATED, rows, commit)
        _write(updated, options, folder, "upsert")


def many(session: SparkSession, folder: Path) -> None:
    """Write a table of very many partitions, and a commit that updates one row of one."""
    from pyspark.sql.functions import expr

    options = _QUIET | {
        "hoodie.datasource.write.partitionpath.field": "region",
        "hoodie.bulkinsert.sort.mode": "PARTITION_SORT",
        "hoodie.bulkinsert.shuffle.parallelism": str(GROUPS),
        "hoodie.upsert.shuffle.parallelism": "1",
    }
    spread = f"lpad(cast(order_id % {MANY_GROUPS} as string), 4, '0')"
    orders = _orders(session, 0, MANY_GROUPS, 1, MANY_GROUPS, 0)
    rows = orders.withColumn("region", expr(spread))
    _write(rows, options, folder, "bulk_insert")
    one = rows.filter("order_id = 500").withColumn("ts", expr("1L"))
    _write(one, options, folder, "upsert")


def _orders(
    session: SparkSession, start: int, end: int, step: int, rows: int, version: int
) -> DataFrame:
    micros_per_row = _DAYS * 86_400_000_000 // rows
    return session.range(start, end, step, GROUPS).selectExpr(
        "id AS order_id",
        "pmod(xxhash64(id, 1), 2000000) AS customer_id",
        f"pmod(xxhash64(id, 2), 20000) / 100.0D + {version} AS amount",
        "substr(lower(hex(xxhash64(id, 3))), 1, 12) AS note",
        "element_at(array('eu', 'us', 'apac', 'latam', 'mea'), "
        "cast(pmod(xxhash64(id, 4), 5) + 1 as int)) AS region",
        f"timestamp_micros({_FIRST_SECOND}000000 + id * {micros_per_row}) AS ordered_at",
        f"cast({version} as bigint) AS ts",
    )


def _write(rows: DataFrame, options: dict[str, str], folder: Path, operation: str) -> None:
    mode = "overwrite" if operation == "bulk_insert" else "append"
    said = options | {"hoodie.datasource.write.operation": operation}
    rows.write.format("hudi").options(**said).mode(mode).save(str(folder))


def main(warehouse: str, rows: str, names: list[str]) -> None:
    """Make what is not there yet."""
    place = Path(warehouse)
    session = open_session()
    session.sparkContext.setLogLevel("ERROR")
    for name in names:
        if is_made(place, name):
            continue
        folder = table_folder(place, name)
        shutil.rmtree(folder, ignore_errors=True)
        if name == "many":
            many(session, folder)
        else:
            merged(session, folder, int(rows), LOG_SHARES[name])
        mark_made(place, name)
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
