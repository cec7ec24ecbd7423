"""Engines find a table of a store by the metastore: whole revisions, and only what is committed.

Spark reads by S3A, DuckDB by its own reader of Parquet over Arrow's file system, pyarrow by its
datasets; each is sent by the metastore to addresses that begin with `s3a://`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow.dataset as ds
import pytest
from fsspec.implementations.arrow import ArrowFSWrapper
from hive_metastore.ThriftHiveMetastore import Client
from pyarrow.fs import FileSelector, S3FileSystem
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from behaviour.test_upsert import CHANGES, UPSERT, ChangingLake
from catalog_servers import CatalogServer, fetched_jars, hive_server
from crash.faults import Stopper, stopping_storage, stopping_stores
from s3_servers import KEY, REGION, SECRET, S3Server, moto_server
from small_lake import SCHEMA, load, merged, publish
from spark.hive_spark import HiveSpark, hive_spark

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.slow]

EVERY = 20
"""Spark looks at every so manieth change, and the others at each."""
Rows = dict[int, int]


@pytest.fixture(scope="module")
def store() -> Iterator[S3Server]:
    with moto_server() as found:
        yield found


@pytest.fixture(scope="module")
def s3a(store: S3Server) -> dict[str, str]:
    return {
        "fs.s3a.endpoint": store.endpoint,
        "fs.s3a.endpoint.region": REGION,
        "fs.s3a.path.style.access": "true",
        "fs.s3a.access.key": KEY,
        "fs.s3a.secret.key": SECRET,
    }


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, s3a: dict[str, str]
) -> Iterator[CatalogServer]:
    with hive_server(tmp_path_factory.mktemp("hive"), fetched_jars("s3a"), s3a) as found:
        yield found


@pytest.fixture(scope="module")
def spark_sql(server: CatalogServer, s3a: dict[str, str]) -> Iterator[HiveSpark]:
    reached = {f"spark.hadoop.{key}": text for key, text in s3a.items()}
    with hive_spark(
        server, {"spark.jars": ",".join(map(str, fetched_jars("s3a"))), **reached}
    ) as it:
        yield it


class S3aFiles(ArrowFSWrapper):  # type: ignore[misc]
    """Arrow's file system under the scheme by which DuckDB asks for it."""

    protocol = "s3a"


@dataclass(frozen=True)
class Readers:
    """What each engine finds of a table, by id."""

    server: CatalogServer
    store: S3Server
    spark_sql: HiveSpark
    table: str

    def by_spark(self) -> Rows:
        """Ask Spark."""
        if self.spark_sql.answer(f"SHOW TABLES IN default LIKE '{self.table}'") == []:
            return {}
        _, rows = self.spark_sql.ask(
            f"REFRESH TABLE {self.table}", f"SELECT id, amount FROM {self.table}"
        )
        return by_id((int(row["id"]), int(row["amount"])) for row in rows)

    def by_pyarrow(self) -> Rows:
        """Open a dataset over each place that the metastore tells."""
        # A revision without rows has no object before its marker: there is no directory to open.
        files = [
            file.path
            for place in self.places()
            for file in self._files.get_file_info(FileSelector(place, allow_not_found=True))
            if file.extension == "parquet"
        ]
        table = ds.dataset(files, SCHEMA, filesystem=self._files).to_table(columns=["id", "amount"])
        return by_id(zip(*table.to_pydict().values(), strict=True))

    def by_duckdb(self) -> Rows:
        """Let DuckDB list and read each place that the metastore tells."""
        with duckdb.connect() as connection:
            files = S3aFiles(self._files)
            connection.register_filesystem(files)
            # DuckDB refuses a pattern that no file matches.
            found = [f"s3a://{place}/*.parquet" for place in self.places()]
            asked = [pattern for pattern in found if files.glob(pattern)]
            if not asked:
                return {}
            read = connection.execute("SELECT id, amount FROM read_parquet(?)", [asked])
            return by_id(read.fetchall())

    def places(self) -> list[str]:
        """Ask the metastore where the partitions are: bucket and key."""
        transport = TBufferedTransport(TSocket("127.0.0.1", self.server.port))
        transport.open()
        client = Client(TBinaryProtocol(transport))
        try:
            if self.table not in client.get_all_tables("default"):
                return []
            listed = client.get_partitions("default", self.table, -1)
        finally:
            transport.close()
        told = [each.sd.location for each in listed]
        assert all(place.startswith("s3a://") for place in told), told
        return [place.removeprefix("s3a://") for place in told]

    @property
    def _files(self) -> S3FileSystem:
        return S3FileSystem(
            access_key=KEY,
            secret_key=SECRET,
            region=REGION,
            scheme="http",
            endpoint_override=f"127.0.0.1:{self.store.port}",
        )


def by_id(rows: Any) -> Rows:
    """Give the amounts by id, each of which comes once."""
    found = list(rows)
    assert len(dict(found)) == len(found)
    return dict(found)


@pytest.mark.parametrize("layout", ["in_place", "revisions"])
def test_engines_are_sent_by_the_metastore_to_whole_revisions(
    server: CatalogServer,
    store: S3Server,
    spark_sql: HiveSpark,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    layout: str,
) -> None:
    monkeypatch.setenv("LAKE_KEY", KEY)
    monkeypatch.setenv("LAKE_SECRET", SECRET)
    readers = Readers(server, store, spark_sql, f"in_store_{layout}")
    every = (readers.by_pyarrow, readers.by_duckdb, readers.by_spark)
    place = {
        "path": f"{store.bucket()}/published/orders",
        "layout": layout,
        "metastore": {"uri": server.properties["uri"], "table": f"default.{readers.table}"},
    }
    reached = {"endpoint": store.endpoint, "region": REGION}
    secrets = {"access_key": "${env:LAKE_KEY}", "secret_key": "${env:LAKE_SECRET}"}
    told = {"target": place, "commit": {"policies": ["metastore", "success-file"]}}
    keys = merged(UPSERT, {**told, "s3": {**reached, **secrets}})
    lake = ChangingLake(tmp_path / "lake", keys=keys)
    before, after = {1: 10, 2: 20, 3: 30}, {1: 10, 2: 21, 4: 40}
    seen: list[Rows] = []

    def look() -> None:
        # In place, files of both revisions stand beside each other before the marker is back.
        if layout == "revisions":
            by_spark = [readers.by_spark] if len(stopper.made) % EVERY == 0 else []
            seen.extend(read() for read in (*every[:2], *by_spark))

    lake.write({1: (1, 10), 2: (1, 20), 3: (2, 30)})
    load(lake.pipeline(source=CHANGES))
    assert [read() for read in every] == [{}, {}, {}]
    publish(lake.pipeline(source=CHANGES))
    assert [read() for read in every] == [before] * 3
    lake.write({2: (1, 21), 4: (1, 40)}, deleted=(3,))
    load(lake.pipeline(source=CHANGES))
    assert [read() for read in every] == [before] * 3
    stopper = Stopper(between=look)
    stores = stopping_stores(stopper, stopping_storage(stopper), store.options)
    publish(lake.pipeline(stores, source=CHANGES))
    assert [read() for read in every] == [after] * 3

    # A partition is the unit of a commit: day 1 may be out and day 2 not yet, but none is mixed.
    days = [({1: 10, 2: 20}, {1: 10, 2: 21, 4: 40}), ({3: 30}, {})]
    whole = [one | other for one in days[0] for other in days[1]]
    assert all(rows in whole for rows in seen), seen
    assert layout == "in_place" or {*map(str, (before, after))} <= {*map(str, seen)}
