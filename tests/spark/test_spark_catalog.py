"""Partitions in the catalog of a real Spark: its own Hive metastore, kept by SQL alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from crash.faults import Stopper, stopping_storage
from small_lake import DAY, NOW, SmallLake, day, load, merged, publish
from tidegate.cli.app import app
from tidegate.commit.policies import PolicyContext, SuccessFile
from tidegate.commit.policies.metastore import ListInMetastore
from tidegate.config import MetastoreConfig
from tidegate.errors import (
    DatabaseMissing,
    ListedTableDiffers,
    MetastoreRefused,
    PolicyFailed,
    SparkCatalogUnfit,
    TidegateError,
)
from tidegate.model.metastore import ListedColumn, TableColumns
from tidegate.model.partition import Partition
from tidegate.pipeline.executors import table_in_spark
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tidegate.metastore.protocol import Metastore

pytestmark = pytest.mark.spark

FIRST = ("2026-02-01",)


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A table of its own for each test."""
    name = f"default.{tmp_path.name}"
    yield name
    spark.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.fixture
def lake(tmp_path: Path, table: str) -> SmallLake:
    keys: dict[str, Any] = {
        "target": {"metastore": {"through": "spark", "table": table}},
        "commit": {"policies": ["metastore", "success-file"]},
    }
    return SmallLake(tmp_path / "lake", keys=keys)


@pytest.fixture
def listed(table: str) -> Metastore:
    return table_in_spark(table)


def rows(session: SparkSession, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in session.sql(query).collect()]


def ids(session: SparkSession, table: str) -> list[int]:
    return [row[0] for row in rows(session, f"SELECT id FROM {table} ORDER BY id")]


def landed(lake: SmallLake, **columns: Any) -> None:
    """Let the lake's source be plain files, and add one."""
    landing = lake.root / "landing"
    landing.mkdir(exist_ok=True)
    name = len(list(landing.iterdir()))
    pq.write_table(pa.table(columns), landing / f"{name}.parquet")
    lake.source = {"kind": "files", "path": str(landing)}


TOWNS = ['it\'s \\ "q" `b`', "a/b c=%ü 😀", None, "${env:HOME}", "NULL"]
SHOPS = [7, -1, None, 2**31 - 1, 0]
DAYS = [date(2026, 2, 1), date(1999, 12, 31), None, date(2026, 2, 1), date(2026, 2, 1)]
FLAGS = [True, False, None, True, True]


def test_every_value_of_a_key_is_found_as_its_type(
    lake: SmallLake, listed: Metastore, spark: SparkSession, table: str
) -> None:
    landed(
        lake,
        id=[1, 2, 3, 4, 5],
        inner=[{"a b": 1, "C": [1.5]}] * 5,
        born=DAYS,
        shop=pa.array(SHOPS, pa.int32()),
        town=TOWNS,
        flag=FLAGS,
    )
    fields = {"born": "born", "shop": "shop", "town": "town", "flag": "flag"}
    pipeline = lake.pipeline(
        event_time=None,
        target={"partition_by": {"dt": None, **fields}},
        commit={"trigger": "process-time"},
    )
    load(pipeline)
    publish(pipeline)

    found = rows(spark, f"SELECT id, inner.`a b`, born, shop, town, flag FROM {table} ORDER BY id")
    assert found == [
        (number + 1, 1, *values)
        for number, values in enumerate(zip(DAYS, SHOPS, TOWNS, FLAGS, strict=True))
    ]
    where = "shop = 7 AND born = DATE '2026-02-01'"
    assert rows(spark, f"SELECT id FROM {table} WHERE {where}") == [(1,)]
    assert rows(spark, f"SELECT id FROM {table} WHERE town LIKE 'it%'") == [(1,)]
    assert rows(spark, f"SELECT id FROM {table} WHERE town IS NULL AND shop IS NULL") == [(3,)]
    made = listed.table()
    assert made is not None
    assert (made.pipeline, made.format, made.keeps_files) == ("orders", "parquet", True)
    assert [f"{it.name} {it.type}" for it in (*made.columns.columns, *made.columns.keys)] == [
        *("id bigint", "inner struct<a b:bigint,C:array<double>>"),
        *("born date", "shop int", "town string", "flag boolean"),
    ]


@pytest.mark.follows("PartitionUnlistable")
@pytest.mark.parametrize("towns", [["a", "a "], ["a ", "a"]], ids=["last", "first"])
def test_text_that_ends_with_a_blank_is_refused_before_the_commit_begins(
    lake: SmallLake, spark: SparkSession, table: str, towns: list[str]
) -> None:
    landed(lake, id=[1, 2, 3, 4], shop=["x "] * 4, town=[*towns, "A", " a"])
    keys: dict[str, Any] = {
        "event_time": None,
        "target": {"partition_by": {"dt": None, "shop": "shop", "town": "town"}},
        "commit": {"trigger": "process-time"},
    }
    load(lake.pipeline(**keys))

    errors = [it.error for it in lake.pipeline(**keys).publish_all("cli", NOW) if it.error]

    assert len(errors) == 1
    assert "shop=x /town=a  cannot be listed in a metastore: it ends with a blank" in errors[0]
    assert not (lake.target / "shop=x " / "town=a ").exists()
    query = f"SELECT shop, town FROM {table} ORDER BY town"
    assert rows(spark, query) == [("x ", " a"), ("x ", "A"), ("x ", "a")]
    lake.keys = {}
    (outcome,) = lake.pipeline(**keys).publish_all("cli", NOW)
    assert outcome.error is None
    assert (lake.target / "shop=x " / "town=a " / "_SUCCESS").exists()


def _fail(*_: object) -> None:
    raise SystemExit


def test_commit_that_died_behind_the_list_is_finished(
    lake: SmallLake, listed: Metastore, spark: SparkSession, table: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    lake.keys = merged(lake.keys, {"target": {"format": "orc"}})
    made = lake.commit({1: 3, 2: 1})
    load(lake.pipeline())
    with monkeypatch.context() as dying:
        dying.setattr(SuccessFile, "commit", _fail)
        with pytest.raises(PolicyFailed):
            lake.pipeline().publish(day(1), "cli", NOW)
    between = listed.partition(FIRST)
    assert between is not None
    assert between.location == f"file:{lake.target}/dt=2026-02-01"
    assert not (lake.target / "dt=2026-02-01" / "_SUCCESS").exists()

    publish(lake.pipeline())

    assert (lake.target / "dt=2026-02-01" / "_SUCCESS").exists()
    assert listed.partition(FIRST) == between
    assert ids(spark, table) == made[:3]
    assert rows(spark, f"SHOW PARTITIONS {table}") == [("dt=2026-02-01",)]


def test_session_that_read_a_partition_reads_the_files_of_its_next_revision(
    lake: SmallLake, spark: SparkSession, table: str
) -> None:
    first = lake.commit({1: 2, 2: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    assert ids(spark, table) == first[:2]
    second = lake.commit({1: 1})
    load(lake.pipeline())

    publish(lake.pipeline())

    assert ids(spark, table) == [*first[:2], *second]


@pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "whole"])
def test_readers_are_sent_from_one_whole_revision_to_the_next(
    lake: SmallLake, listed: Metastore, spark: SparkSession, table: str, *, partitioned: bool
) -> None:
    keys: dict[str, Any] = {
        "target": {"layout": "revisions", "write": "overwrite", "keep_revisions": 1},
        "commit": {"trigger": "process-time"},
    }
    keys["target"] |= {} if partitioned else {"partition_by": None}
    first = lake.commit({1: 3})
    load(lake.pipeline(**keys))
    publish(lake.pipeline(**keys))
    other = spark.newSession()
    assert ids(spark, table) == ids(other, table) == first
    second = lake.commit({1: 2})
    load(lake.pipeline(**keys))
    seen: list[list[int]] = []
    trees: list[list[Path]] = []

    def look() -> None:
        tree = sorted(lake.target.rglob("*"))
        if [tree] != trees[-1:]:
            trees.append(tree)
            found = ids(spark, table)
            if [found] != seen[-1:]:
                seen.append(found)

    publish(lake.pipeline(stopping_storage(Stopper(between=look)), **keys))
    look()

    assert seen == [first, second]
    if not partitioned:
        # A session remembers where a table without partitions is.
        other.sql(f"REFRESH TABLE {table}")
    assert ids(other, table) == second
    opened = lake.pipeline(**keys)
    assert list(opened.findings()) == []
    opened.sweep(opened.garbage(NOW + 900 * DAY, timedelta(0)))
    assert ids(spark, table) == second
    at = listed.partition(FIRST) if partitioned else listed.table()
    assert at is not None
    left = list((lake.target / "dt=2026-02-01" if partitioned else lake.target).glob("_rev*/*"))
    assert [f"file:{path}" for path in left] == [at.location]


def test_table_follows_new_columns_and_refuses_wider_ones(
    lake: SmallLake, listed: Metastore, spark: SparkSession, table: str
) -> None:
    keys: dict[str, Any] = {
        "event_time": None,
        "target": {"partition_by": {"dt": None, "shop": "shop"}},
        "commit": {"trigger": "process-time"},
    }
    landed(lake, id=pa.array([1], pa.int32()), shop=["a"])
    load(lake.pipeline(**keys))
    publish(lake.pipeline(**keys))
    landed(lake, id=pa.array([2], pa.int32()), shop=["b"], more=[{"x y": 1}], note=["n"])
    load(lake.pipeline(**keys))
    publish(lake.pipeline(**keys))
    query = f"SELECT id, more.`x y`, note, shop FROM {table} ORDER BY id"
    assert rows(spark, query) == [(1, None, None, "a"), (2, 1, "n", "b")]
    landed(lake, id=pa.array([2**40], pa.int64()), shop=["b"])
    load(lake.pipeline(**keys))

    (outcome,) = lake.pipeline(**keys).publish_all("cli", NOW)

    assert "column 'id': expected bigint, found int" in str(outcome.error)
    assert rows(spark, query)[1:] == [(2, 1, "n", "b")]


COLUMNS = "id BIGINT, at TIMESTAMP, amount BIGINT, more STRING"
OTHERS = {
    "location": (f"({COLUMNS}, dt DATE) USING parquet PARTITIONED BY (dt)", "2"),
    "format": (f"({COLUMNS}, dt DATE) USING orc PARTITIONED BY (dt)", ""),
    "partition keys": (f"({COLUMNS}, day DATE) USING parquet PARTITIONED BY (day)", ""),
    "partition key 'dt'": (f"({COLUMNS}, dt INT) USING parquet PARTITIONED BY (dt)", ""),
    "column 'amount'": (
        "(id BIGINT, at TIMESTAMP, amount INT, dt DATE) USING parquet PARTITIONED BY (dt)", ""
    ),
    "column 'at'": ("(id BIGINT, amount INT, dt DATE) USING parquet PARTITIONED BY (dt)", ""),
    "pipeline": (
        f"({COLUMNS}, dt DATE) USING parquet PARTITIONED BY (dt) "
        "TBLPROPERTIES ('tidegate.pipeline' = 'another')", ""
    ),
}  # fmt: skip


@pytest.mark.follows("ListedTableDiffers")
def test_table_that_is_another_one_is_refused_until_it_fits(
    lake: SmallLake, spark: SparkSession, table: str
) -> None:
    made = lake.commit({1: 2, 2: 1})
    load(lake.pipeline())
    for part, (shape, elsewhere) in OTHERS.items():
        spark.sql(f"CREATE TABLE {table} {shape} LOCATION '{lake.target}{elsewhere}'")
        with pytest.raises(ListedTableDiffers, match=f": {part}: expected"):
            lake.pipeline().publish(day(1), "cli", NOW)
        spark.sql(f"DROP TABLE {table}")
    spark.sql(f"CREATE VIEW {table} AS SELECT 1")
    with pytest.raises(ListedTableDiffers):
        lake.pipeline().publish(day(1), "cli", NOW)
    spark.sql(f"DROP VIEW {table}")
    assert lake.ids() == {}
    # Hive's own kind of table, as other tools make it.
    spark.sql(
        f"CREATE EXTERNAL TABLE {table} ({COLUMNS}) PARTITIONED BY (dt STRING) "
        f"STORED AS PARQUET LOCATION '{lake.target}'"
    )

    publish(lake.pipeline())

    assert ids(spark, table) == made[:2]


def test_partition_that_is_emptied_is_dropped_if_asked_and_its_files_are_kept(
    lake: SmallLake, listed: Metastore, spark: SparkSession, table: str
) -> None:
    keys: dict[str, Any] = {
        "event_time": None,
        "target": {
            "partition_by": {"dt": None, "country": "country"},
            "static_partition": {"country": "de"},
            "write": "overwrite",
            "metastore": {"on_empty": "drop"},
        },
        "commit": {"trigger": "process-time"},
    }
    landed(lake, id=[1, 2])
    load(lake.pipeline(**keys))
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, country STRING) USING parquet PARTITIONED BY (country)"
    )
    managed = listed.table()
    assert managed is not None
    spark.sql(f"ALTER TABLE {table} SET LOCATION 'file:{lake.target}'")
    (outcome,) = lake.pipeline(**keys).publish_all("cli", NOW)
    assert "type: expected an external table" in str(outcome.error)
    assert "found a managed one" in str(outcome.error)
    # Only the list of what is not there yet goes with it.
    spark.sql(f"ALTER TABLE {table} SET LOCATION '{managed.location}'")
    spark.sql(f"DROP TABLE {table}")
    publish(lake.pipeline(**keys))
    assert ids(spark, table) == [1, 2]
    landed(lake, id=pa.array([], pa.int64()))
    load(lake.pipeline(**keys))

    publish(lake.pipeline(**keys))

    assert listed.partition(("de",)) is None
    assert (lake.target / "country=de" / "_SUCCESS").exists()


def test_list_that_others_changed_is_found_and_mended(
    lake: SmallLake, spark: SparkSession, table: str
) -> None:
    made = lake.commit({1: 2, 2: 1, 3: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    spark.sql(f"ALTER TABLE {table} PARTITION (dt = '2026-02-01') SET LOCATION '{lake.root}/no'")
    spark.sql(f"ALTER TABLE {table} DROP PARTITION (dt = '2026-02-02')")
    opened = lake.pipeline()

    found = sorted(str(item) for item in opened.findings())
    for number in (1, 2):
        opened.list_again(day(number), "cli", NOW)

    assert len(found) == 2
    assert f"dt=2026-02-01: it is listed in {table} at file:{lake.root}/no" in found[0]
    assert f"dt=2026-02-02: it is not listed in {table}" in found[1]
    assert ids(spark, table) == made[:3]
    assert list(lake.pipeline().findings()) == []


@pytest.mark.follows("DatabaseMissing")
def test_database_that_is_missing_is_named_until_it_is_made(
    lake: SmallLake, spark: SparkSession, tmp_path: Path
) -> None:
    made = lake.commit({1: 1, 2: 1})
    name = f"spark_catalog.shop_{tmp_path.name}"
    lake.keys = merged(lake.keys, {"target": {"metastore": {"table": f"{name}.orders"}}})
    load(lake.pipeline())
    with pytest.raises(DatabaseMissing, match=f"CREATE DATABASE {name}"):
        lake.pipeline().publish(day(1), "cli", NOW)

    spark.sql(f"CREATE DATABASE {name}")
    publish(lake.pipeline())

    assert ids(spark, f"{name}.orders") == made[:1]
    spark.sql(f"DROP DATABASE {name} CASCADE")


def test_check_and_plan_say_through_what_and_start_no_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.execute.catalog.open_session", _fail)
    lake = SmallLake(tmp_path / "lake")
    lake.keys = {
        "target": {"metastore": {"through": "spark", "table": "shop.orders"}},
        "commit": {"policies": ["metastore", "success-file"]},
    }
    lake.commit({1: 1})
    lake.file()
    lake.found_by_name(monkeypatch)
    place = "shop.orders through Spark's catalog"

    checked = CliRunner().invoke(app, ["check", "orders"])
    planned = CliRunner().invoke(app, ["plan", "orders", "--dry-run"])
    as_json = CliRunner().invoke(app, ["plan", "orders", "--dry-run", "--json"])

    assert checked.exit_code == planned.exit_code == 0, checked.output + planned.output
    assert f"metastore: {place}, compared when a publish begins" in one_line(checked.output)
    assert f"would list in {place}" in one_line(planned.output)
    assert json.loads(as_json.stdout)["lists_in"] == place


def one_line(text: str) -> str:
    return " ".join(text.split())


JDBC = "spark.sql.catalog.elsewhere"
QUOTES = "spark.sql.parser.escapedStringLiterals"


@pytest.mark.follows("SparkCatalogUnfit")
def test_catalog_that_cannot_list_is_refused_until_another_is_named(
    lake: SmallLake, spark: SparkSession, table: str, tmp_path: Path
) -> None:
    made = lake.commit({1: 1, 2: 1})
    load(lake.pipeline())
    database = f"jdbc:derby:memory:{tmp_path.name};create=true"
    settings = {
        JDBC: "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
        f"{JDBC}.url": database,
        f"{JDBC}.driver": "org.apache.derby.jdbc.EmbeddedDriver",
    }
    for key, value in settings.items():
        spark.conf.set(key, value)
    for name in ("elsewhere.SYS.orders", "nowhere.shop.orders"):
        with pytest.raises(SparkCatalogUnfit, match=f"'{name}' cannot be kept"):
            lake.pipeline(target={"metastore": {"table": name}}).publish(day(1), "cli", NOW)
    spark.conf.set(QUOTES, "true")
    try:
        with pytest.raises(SparkCatalogUnfit, match=f"`{QUOTES}` is `true`"):
            lake.pipeline().publish(day(1), "cli", NOW)
    finally:
        spark.conf.unset(QUOTES)
    assert not list(lake.target.rglob("_SUCCESS"))

    publish(lake.pipeline())

    assert ids(spark, table) == made[:1]


def context(root: Path, number: int, columns: TableColumns) -> PolicyContext:
    partition = Partition((("dt", f"2026-02-{number:02d}"),))
    return PolicyContext(
        pipeline="orders",
        table_root=str(root),
        partition=partition,
        partition_root=f"{root}/{partition.path}",
        revision=1,
        key="key",
        files=("part-1",),
        rows=3,
        size_bytes=30,
        marker_name="_SUCCESS",
        marker="{}",
        storage=LocalStorage(),
        columns=columns,
        scratch=str(root / "scratch"),
    )


def test_commits_at_once_make_one_table_with_the_columns_of_all(
    listed: Metastore, spark: SparkSession, table: str, tmp_path: Path
) -> None:
    options = MetastoreConfig(through="spark", table=table)
    problems: list[TidegateError] = []

    def commit(number: int) -> None:
        columns = tuple(ListedColumn(name, "int") for name in ("a", f"c{number}"))
        known = TableColumns(columns, (ListedColumn("dt", "string"),))
        policy = ListInMetastore(table_in_spark(table), options, "parquet")
        try:
            policy.commit(context(tmp_path, number, known))
        except TidegateError as problem:
            problems.append(problem)

    threads = [threading.Thread(target=commit, args=(number,)) for number in range(1, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [it for it in problems if not isinstance(it, MetastoreRefused)] == []
    for number in range(1, 4):
        commit(number)
    made = listed.table()
    assert made is not None
    assert sorted(it.name for it in made.columns.columns) == ["a", "c1", "c2", "c3"]
    assert len(rows(spark, f"SHOW PARTITIONS {table}")) == 3


def test_column_that_another_commit_added_meanwhile_is_no_error(
    listed: Metastore, spark: SparkSession, table: str, tmp_path: Path
) -> None:
    spark.sql(f"CREATE TABLE {table} (a INT) USING parquet LOCATION '{tmp_path}/t'")
    found = listed.table()
    assert found is not None
    wanted = (*found.columns.columns, ListedColumn("b", "int"))

    listed.widen(wanted)
    listed.widen(wanted)
    listed.create(replace(found, location=f"{tmp_path}/other"))

    again = listed.table()
    assert again is not None
    assert again.columns.columns == wanted
    assert again.location == f"file:{tmp_path}/t"


def tidegate(lake: SmallLake, *arguments: str, **variables: str) -> str:
    found = {
        "TIDEGATE_PIPELINES": str(lake.root),
        "TIDEGATE_LEDGER": f"sqlite:///{lake.root}/ledger.db",
    }
    done = subprocess.run(
        [sys.executable, "-m", "tidegate.cli", *arguments],
        env={**os.environ, **found, **variables},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return f"{done.returncode}: {one_line(done.stdout + done.stderr)}"


@pytest.mark.slow  # two more processes with a Spark; the tests above publish through one
@pytest.mark.follows("SparkCatalogUnfit")
def test_tables_that_would_be_gone_with_the_process_are_refused_until_spark_keeps_them(
    lake: SmallLake, table: str, tmp_path: Path
) -> None:
    made = lake.commit({1: 1, 2: 1})
    load(lake.pipeline())

    forgotten = tidegate(lake, "publish", "orders")
    settings = tmp_path / "conf"
    settings.mkdir()
    (settings / "spark-defaults.conf").write_text(
        "spark.sql.catalogImplementation hive\n"
        f"spark.sql.warehouse.dir {tmp_path}/warehouse\n"
        f"spark.driver.extraJavaOptions -Dderby.system.home={tmp_path}\n"
    )
    kept = tidegate(lake, "publish", "orders", SPARK_CONF_DIR=str(settings))

    assert forgotten.startswith("1: "), forgotten
    assert f"'{table}' cannot be kept through Spark" in forgotten
    assert "`spark.sql.catalogImplementation` is `in-memory`" in forgotten
    assert kept.startswith("0: "), kept
    assert lake.ids() == {"dt=2026-02-01": made[:1]}
    assert (tmp_path / "metastore_db").is_dir()
