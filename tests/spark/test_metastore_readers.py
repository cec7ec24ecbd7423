"""Spark finds what is committed by the name of its table, in every format and by every key."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from catalog_servers import CatalogServer, hive_server
from small_lake import NOW, SmallLake, load, publish
from spark.hive_spark import HiveSpark, hive_spark

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.spark

FORMATS = ("parquet", "orc")
MOMENT = datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)
ROWS = {
    "id": [1, 2, 3, 4],
    "at": [MOMENT, MOMENT, None, MOMENT + timedelta(days=1)],
    "local": pa.array([MOMENT.replace(tzinfo=None)] * 4, pa.timestamp("us")),
    "price": [Decimal("1.50"), None, Decimal("-2.25"), Decimal("0.00")],
    "day": [date(2026, 1, 31), None, date(1999, 12, 31), date(2026, 1, 31)],
    "Inner": [{"a": 1, "b": ["x", None]}, None, {"a": None, "b": []}, {"a": 2, "b": None}],
    "shop": pa.array([7, 7, None, 8], pa.int32()),
    "town": ["Köln/Süd", "a=b %", None, "x"],
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CatalogServer]:
    with hive_server(tmp_path_factory.mktemp("hive")) as found:
        yield found


@pytest.fixture(scope="module")
def spark_sql(server: CatalogServer) -> Iterator[HiveSpark]:
    with hive_spark(server) as found:
        yield found


def published(server: CatalogServer, root: Path, form: str) -> str:
    """Publish the rows in a format; the name of their table."""
    table = f"default.rows_{form}"
    landing = root / "landing"
    landing.mkdir(parents=True)
    pq.write_table(pa.table(ROWS), landing / "a.parquet")
    lake = SmallLake(root / "lake")
    lake.source = {"kind": "files", "path": str(landing)}
    pipeline = lake.pipeline(
        event_time=None,
        target={
            "format": form,
            "partition_by": {"dt": "day(at)", "shop": "shop", "town": "town"},
            "metastore": {"uri": server.properties["uri"], "table": table},
        },
        commit={"trigger": "process-time", "policies": ["metastore", "success-file"]},
    )
    load(pipeline)
    publish(pipeline)
    return table


def test_rows_of_every_format_are_those_that_were_published(
    server: CatalogServer, spark_sql: HiveSpark, tmp_path: Path
) -> None:
    tables = [published(server, tmp_path / form, form) for form in FORMATS]
    columns = "id, at, local, price, day, inner, dt, shop, town"

    found = spark_sql.ask(
        *(f"SELECT {columns} FROM {table} ORDER BY id" for table in tables),
        *(f"SELECT id FROM {table} WHERE dt = DATE '2026-01-31' AND shop = 7 AND town = 'a=b %'"
          for table in tables),
        *(f"SELECT id FROM {table} WHERE dt IS NULL AND town IS NULL" for table in tables),
    )  # fmt: skip

    text = "2026-01-31 12:00:00.123456"
    expected = [
        {"id": "1", "at": text, "local": text, "price": "1.50", "day": "2026-01-31",
         "inner": "{1, [x, null]}", "dt": "2026-01-31", "shop": "7", "town": "Köln/Süd"},
        {"id": "2", "at": text, "local": text, "price": None, "day": None,
         "inner": None, "dt": "2026-01-31", "shop": "7", "town": "a=b %"},
        {"id": "3", "at": None, "local": text, "price": "-2.25", "day": "1999-12-31",
         "inner": "{null, []}", "dt": None, "shop": None, "town": None},
        {"id": "4", "at": text.replace("01-31", "02-01"), "local": text, "price": "0.00",
         "day": "2026-01-31", "inner": "{2, null}", "dt": "2026-02-01", "shop": "8", "town": "x"},
    ]  # fmt: skip
    assert found[:2] == [expected] * 2
    assert found[2:4] == [[{"id": "2"}]] * 2
    assert found[4:] == [[{"id": "3"}]] * 2


def test_only_what_is_committed_is_found_also_in_a_table_that_spark_made(
    server: CatalogServer, spark_sql: HiveSpark, tmp_path: Path
) -> None:
    lake = SmallLake(tmp_path / "lake")
    table = "default.made_by_spark"
    lake.target.mkdir(parents=True)
    spark_sql.ask(
        f"CREATE TABLE {table} (id BIGINT, at TIMESTAMP, amount BIGINT, dt DATE) USING parquet "
        f"PARTITIONED BY (dt) LOCATION 'file:{lake.target}'",
    )
    lake.keys = {
        "target": {"metastore": {"uri": server.properties["uri"], "table": table}},
        "commit": {"policies": ["metastore", "success-file"]},
    }
    ids = lake.commit({1: 2, 2: 2})
    load(lake.pipeline(), now=NOW)

    publish(lake.pipeline())

    query = f"SELECT id, dt FROM {table} ORDER BY id"
    assert spark_sql.ask(query) == [[{"id": str(id), "dt": "2026-02-01"} for id in ids[:2]]]


@pytest.mark.parametrize("keys", [{"dt": "day(at)"}, None], ids=["partitioned", "whole"])
def test_table_is_read_from_the_directory_of_its_newest_revision(
    server: CatalogServer, spark_sql: HiveSpark, tmp_path: Path, keys: dict[str, str] | None
) -> None:
    lake = SmallLake(tmp_path / "lake")
    table = f"default.revisions_{'keys' if keys else 'whole'}"
    lake.keys = {
        "target": {
            "layout": "revisions",
            "write": "overwrite",
            "partition_by": keys,
            "metastore": {"uri": server.properties["uri"], "table": table},
        },
        "commit": {"trigger": "process-time", "policies": ["metastore", "success-file"]},
    }
    for rows in (2, 3):
        ids = lake.commit({1: rows})
        load(lake.pipeline(), now=NOW)
        publish(lake.pipeline())

    query = f"SELECT id FROM {table} ORDER BY id"
    # The input formats of Hive pass by a directory with a hidden name, even if they are sent to it.
    by_hive = "SET spark.sql.hive.convertMetastoreParquet={}"
    found, _, found_by_hive, _ = spark_sql.ask(
        query, by_hive.format("false"), query, by_hive.format("true")
    )

    assert found == found_by_hive == [{"id": str(id)} for id in ids]
