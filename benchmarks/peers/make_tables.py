"""Make the Iceberg tables of the comparison with Spark, in the peers' environment.

Run by `spark-submit`; a table that is there already is left alone. Equality deletes are written by
Iceberg's own writers, because Spark's SQL has no words for them.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.foreign_session import CORES
from benchmarks.peers.layout import (
    CHANGE_COMMITS,
    CHANGED_SHARES,
    DENSE_ROWS,
    EQUALITY_DELETES,
    ORDER_COMMITS,
    is_made,
    mark_made,
)
from benchmarks.peers.session import open_session

if TYPE_CHECKING:
    from collections.abc import Callable

    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession

_DAYS = 10
_FIRST_SECOND = 1_772_323_200
"""2026-03-01T00:00Z."""
_CHANGE_FILES = 100
_ONE_IN = 2_000
"""Of the rows of a changed file, each commit updates one in so many."""
_FANOUT = {"write.distribution-mode": "none", "write.spark.fanout.enabled": "true"}
_MERGE_ON_READ = {"write.delete.mode": "merge-on-read", "write.update.mode": "merge-on-read"}


@dataclass(frozen=True)
class Maker:
    """Makes tables of one size in one session."""

    session: SparkSession
    rows: int

    def plain(self) -> None:
        """Append orders; delete nothing."""
        self._orders("plain", 2)

    def positions(self) -> None:
        """Delete one row in twenty by position delete files."""
        self._orders("positions", 2)
        self._delete_one_in_twenty("positions")

    def vectors(self) -> None:
        """Delete one row in twenty by deletion vectors."""
        self._orders("vectors", 3)
        self._delete_one_in_twenty("vectors")

    def keys(self) -> None:
        """Delete orders by their ids, in one commit with one delete file a day."""
        self._orders("keys", 2)
        step = max(1, self.rows // EQUALITY_DELETES)
        self.session.sql(
            "CREATE OR REPLACE TABLE lake.bench.deleted USING iceberg "
            "PARTITIONED BY (days(ordered_at)) "
            f"AS SELECT order_id, ordered_at FROM lake.bench.keys WHERE order_id % {step} = 0 "
            "ORDER BY ordered_at"
        )
        _delete_by_key(self.session, "lake.bench.keys", "lake.bench.deleted")
        self.session.sql("DROP TABLE lake.bench.deleted PURGE")

    def changes(self, name: str, share: float, properties: dict[str, str]) -> None:
        """Update some rows of the first files of a table, in every one of some commits."""
        width = self.rows // _CHANGE_FILES
        self._create(name, 2, f"truncate({width}, order_id)", _FANOUT | properties)
        self._order_rows(0, self.rows, _CHANGE_FILES).writeTo(f"lake.bench.{name}").append()
        changed = int(width * _CHANGE_FILES * share)
        for commit in range(CHANGE_COMMITS):
            self.session.sql(
                f"UPDATE lake.bench.{name} SET amount = amount + 1 "
                f"WHERE order_id < {changed} AND order_id % {_ONE_IN} = {commit}"
            )

    def dense(self) -> None:
        """Write one small file of very many rows."""
        self._create("dense", 2, "", {})
        rows = self.session.range(0, DENSE_ROWS, 1, 1).selectExpr(
            "cast(id div 1000000 as bigint) AS order_id",
            "1L AS customer_id",
            "cast(1.0 as double) AS amount",
            "'same' AS note",
            "if(id % 1000000 = 0, 'us', 'eu') AS region",
            f"timestamp_seconds({_FIRST_SECOND}) AS ordered_at",
        )
        rows.writeTo("lake.bench.dense").append()

    def _orders(self, name: str, version: int) -> None:
        self._create(name, version, "days(ordered_at)", _FANOUT | _MERGE_ON_READ)
        per_commit = self.rows // ORDER_COMMITS
        for commit in range(ORDER_COMMITS):
            start = commit * per_commit
            added = self._order_rows(start, start + per_commit, CORES)
            added.writeTo(f"lake.bench.{name}").append()

    def _create(self, name: str, version: int, partition: str, properties: dict[str, str]) -> None:
        self.session.sql(f"DROP TABLE IF EXISTS lake.bench.{name} PURGE")
        said = {"format-version": str(version), "write.parquet.compression-codec": "zstd"}
        texts = ", ".join(f"'{key}'='{value}'" for key, value in (said | properties).items())
        partitioned = f"PARTITIONED BY ({partition})" if partition else ""
        self.session.sql(
            f"CREATE TABLE lake.bench.{name} (order_id bigint, customer_id bigint, amount double, "
            f"note string, region string, ordered_at timestamp) USING iceberg {partitioned} "
            f"TBLPROPERTIES ({texts})"
        )

    def _order_rows(self, start: int, end: int, tasks: int) -> DataFrame:
        """Make orders in order of time; one in twenty comes up to a day late."""
        micros_per_row = _DAYS * 86_400_000_000 / self.rows
        late = "if(pmod(xxhash64(id, 6), 20) = 0, pmod(xxhash64(id, 7), 86400000000), 0)"
        on_time = f"{_FIRST_SECOND}000000 + cast(id * {micros_per_row} as bigint)"
        return self.session.range(start, end, 1, tasks).selectExpr(
            "id AS order_id",
            "pmod(xxhash64(id, 1), 2000000) AS customer_id",
            "pmod(xxhash64(id, 2), 20000) / 100.0D AS amount",
            "substr(lower(hex(xxhash64(id, 3))), 1, 12) AS note",
            "element_at(array('eu', 'us', 'apac', 'latam', 'mea'), "
            "cast(pmod(xxhash64(id, 4), 5) + 1 as int)) AS region",
            f"timestamp_micros(greatest({_FIRST_SECOND}000000, {on_time} - {late})) AS ordered_at",
        )

    def _delete_one_in_twenty(self, name: str) -> None:
        self.session.sql(f"DELETE FROM lake.bench.{name} WHERE pmod(xxhash64(order_id, 5), 20) = 0")


def _delete_by_key(session: SparkSession, target: str, keys: str) -> None:
    """Commit equality deletes on `order_id`, in each partition those that a table of keys has."""
    java = session.sparkContext._jvm
    iceberg = java.org.apache.iceberg
    load = iceberg.spark.Spark3Util.loadIcebergTable
    table, source = (load(session._jsparkSession, name) for name in (target, keys))
    schema = table.schema()
    ids = session.sparkContext._gateway.new_array(java.int, 1)
    ids[0] = schema.findField("order_id").fieldId()
    only_key = schema.select(["order_id"])
    make = iceberg.data.GenericAppenderFactory(schema, table.spec(), ids, only_key, None)
    delta = table.newRowDelta()
    for day in range(_DAYS):
        partition = iceberg.PartitionData(table.spec().partitionType())
        partition.set(0, java.java.lang.Integer.valueOf(_FIRST_SECOND // 86_400 + day))
        path = table.locationProvider().newDataLocation(f"deleted-{day}.parquet")
        output = iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(
            table.io().newOutputFile(path)
        )
        writer = make.newEqDeleteWriter(output, iceberg.FileFormat.PARQUET, partition)
        first = (_FIRST_SECOND + day * 86_400) * 1_000_000
        column = iceberg.expressions.Expressions
        on_day = column.__getattr__("and")(
            column.greaterThanOrEqual("ordered_at", first),
            column.lessThan("ordered_at", first + 86_400_000_000),
        )
        found = iceberg.data.IcebergGenerics.read(source).where(on_day).select(["order_id"]).build()
        _write_all(session, writer, found)
        writer.close()
        delta.addDeletes(writer.toDeleteFile())
    delta.commit()


def _write_all(session: SparkSession, writer: JavaObject, rows: JavaObject) -> None:
    """Call `write(Iterable)`; the gateway by itself would choose `write(T)`, of one row."""
    java, gateway = session.sparkContext._jvm, session.sparkContext._gateway
    kinds, values = (
        gateway.new_array(java.java.lang.Class, 1),
        gateway.new_array(java.java.lang.Object, 1),
    )
    kinds[0] = java.java.lang.Class.forName("java.lang.Iterable")
    values[0] = rows
    writer.getClass().getMethod("write", kinds).invoke(writer, values)


def main(warehouse: str, rows: str, names: list[str]) -> None:
    """Make what is not there yet."""
    folder = Path(warehouse)
    session = open_session(folder)
    session.sparkContext.setLogLevel("ERROR")
    session.sql("CREATE NAMESPACE IF NOT EXISTS lake.bench")
    maker = Maker(session, int(rows))
    makers: dict[str, Callable[[], None]] = {
        "plain": maker.plain,
        "positions": maker.positions,
        "vectors": maker.vectors,
        "keys": maker.keys,
        "dense": maker.dense,
    }
    for percent, share in CHANGED_SHARES.items():
        twins = {"mor": _MERGE_ON_READ, "cow": {"write.update.mode": "copy-on-write"}}
        for kind, properties in twins.items():
            name = f"{kind}_{percent}"
            makers[name] = _changes(maker, name, share, properties)
    for name in names:
        if not is_made(folder, name):
            shutil.rmtree(folder / "bench" / name, ignore_errors=True)
            makers[name]()
            mark_made(folder, name)
    session.stop()


def _changes(
    maker: Maker, name: str, share: float, properties: dict[str, str]
) -> Callable[[], None]:
    return lambda: maker.changes(name, share, properties)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
