"""Partitions in a real Hive metastore: listed when they are committed, and as they are."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from catalog_servers import CatalogServer, hive_server
from crash.faults import Stopper, stopping_storage
from small_lake import DAY, NOW, SmallLake, day, load, local, merged, publish
from tidegate.cli.app import app
from tidegate.commit.policies import PolicyContext, SuccessFile
from tidegate.commit.policies.metastore import ListInMetastore
from tidegate.config import MetastoreConfig
from tidegate.errors import (
    ColumnsUnknown,
    ColumnUnlistable,
    DatabaseMissing,
    ListedTableDiffers,
    MetastoreRefused,
    MetastoreSilent,
    PolicyFailed,
    TidegateError,
)
from tidegate.metastore import open_metastore
from tidegate.model.metastore import ListedColumn, ListedPartition, ListedTable, TableColumns
from tidegate.model.partition import Partition
from tidegate.model.run import Run
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidegate.metastore.protocol import Metastore

pytestmark = pytest.mark.on_disk

FIRST, SECOND = ("2026-02-01",), ("2026-02-02",)
NULL = "__HIVE_DEFAULT_PARTITION__"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CatalogServer]:
    with hive_server(tmp_path_factory.mktemp("hive")) as found:
        yield found


@pytest.fixture
def uri(server: CatalogServer) -> str:
    return server.properties["uri"]


@pytest.fixture
def table(tmp_path: Path) -> str:
    """A table of its own for each test, in the database that every metastore has."""
    return f"default.{tmp_path.name}"


@pytest.fixture
def listed(uri: str, table: str) -> Metastore:
    return open_metastore(uri, table)


@pytest.fixture
def lake(tmp_path: Path, uri: str, table: str) -> SmallLake:
    keys: dict[str, Any] = {
        "target": {"metastore": {"uri": uri, "table": table}},
        "commit": {"policies": ["metastore", "success-file"]},
    }
    return SmallLake(tmp_path / "lake", keys=keys)


def made(metastore: Metastore) -> ListedTable:
    found = metastore.table()
    assert found is not None
    return found


def entry(metastore: Metastore, *values: str) -> ListedPartition:
    found = metastore.partition(values)
    assert found is not None
    return found


def texts(columns: tuple[ListedColumn, ...]) -> list[str]:
    return [f"{column.name} {column.type}" for column in columns]


def test_partition_is_listed_once_it_is_committed(lake: SmallLake, listed: Metastore) -> None:
    ids = lake.commit({1: 3, 2: 2})
    load(lake.pipeline())
    assert listed.table() is None

    publish(lake.pipeline())

    table, first = made(listed), entry(listed, *FIRST)
    assert table.pipeline == "orders"
    assert table.location == f"file:{lake.target}"
    assert texts(table.columns.keys) == ["dt date"]
    assert texts(table.columns.columns) == ["id bigint", "at timestamp", "amount bigint"]
    assert lake.ids()["dt=2026-02-01"] == ids[:3]
    assert (first.revision, first.files, first.rows) == (1, 1, 3)
    assert first.location == f"file:{lake.target}/dt=2026-02-01"
    sizes = [path.stat().st_size for path in (lake.target / "dt=2026-02-01").glob("part-*")]
    assert first.size_bytes == sum(sizes)
    assert listed.partition(SECOND) is None


def test_revision_replaces_the_entry_of_its_partition_only(
    lake: SmallLake, listed: Metastore
) -> None:
    lake.commit({1: 3, 2: 2, 3: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    second = entry(listed, *SECOND)
    lake.commit({1: 2, 4: 1})
    load(lake.pipeline())

    publish(lake.pipeline())

    first = entry(listed, *FIRST)
    assert (first.revision, first.files, first.rows) == (2, 2, 5)
    assert entry(listed, *SECOND) == second


@pytest.mark.follows("ColumnUnlistable")
def test_column_that_hive_has_no_type_for_is_left_out(
    lake: SmallLake, listed: Metastore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    landing = tmp_path / "landing"
    landing.mkdir()
    rows = pa.table({"id": [1], "day": [date(2026, 2, 1)], "at": pa.array([5], pa.time64("us"))})
    pq.write_table(rows, landing / "a.parquet")
    lake.source = {"kind": "files", "path": str(landing)}
    keys: dict[str, Any] = {
        "event_time": None,
        "target": {"partition_by": {"dt": "day(day)"}},
        "commit": {"trigger": "process-time"},
    }
    load(lake.pipeline(**keys))
    with pytest.raises(ColumnUnlistable, match=r"'at' .*time64.* `source\.read\.columns`"):
        lake.pipeline(**keys).publish(day(1), "cli", NOW)
    assert not list(lake.target.glob("dt=*/part-*"))

    keys["source"] = {"read": {"columns": ["id", "day"]}}
    lake.file(**keys)
    lake.found_by_name(monkeypatch)
    rebuilt = CliRunner().invoke(app, ["rebuild", "orders", "dt=2026-02-01"])
    assert rebuilt.exit_code == 0, rebuilt.output
    publish(lake.pipeline(**keys))

    assert texts(made(listed).columns.columns) == ["id bigint", "day date"]


def _fail(*_: object) -> None:
    raise SystemExit


def test_commit_that_died_behind_the_metastore_is_finished(
    lake: SmallLake, listed: Metastore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = lake.commit({1: 3, 2: 1})
    load(lake.pipeline())

    with monkeypatch.context() as dying:
        dying.setattr(SuccessFile, "commit", _fail)
        with pytest.raises(PolicyFailed):
            lake.pipeline().publish(day(1), "cli", NOW)
    between = entry(listed, *FIRST)
    assert not (lake.target / "dt=2026-02-01" / "_SUCCESS").exists()

    publish(lake.pipeline())

    assert lake.ids() == {"dt=2026-02-01": ids[:3]}
    assert entry(listed, *FIRST) == between


KEYS = {
    "text": (pa.string(), "string", ["a/b c=%ü", "x", None]),
    "number": (pa.int32(), "int", [7, -1, None]),
    "large": (pa.int64(), "bigint", [2**40, 0, None]),
    "day": (pa.date32(), "date", [date(2026, 2, 1), date(1999, 1, 1), None]),
    "flag": (pa.bool_(), "boolean", [True, False, None]),
    "price": (pa.decimal128(5, 2), "string", [Decimal("1.50"), Decimal("-2.00"), None]),
}


@pytest.mark.parametrize("name", KEYS)
def test_every_type_of_key_is_listed_by_the_text_of_its_directory(
    lake: SmallLake, listed: Metastore, tmp_path: Path, name: str
) -> None:
    kind, said, values = KEYS[name]
    landing = tmp_path / "landing"
    landing.mkdir()
    rows = pa.table({"id": [1, 2, 3], name: pa.array(values, kind)})
    pq.write_table(rows, landing / "a.parquet")
    lake.source = {"kind": "files", "path": str(landing)}
    pipeline = lake.pipeline(
        event_time=None,
        target={"partition_by": {"dt": None, name: name}},
        commit={"trigger": "process-time"},
    )

    load(pipeline)
    publish(pipeline)

    assert texts(made(listed).columns.keys) == [f"{name} {said}"]
    found = [state.partition for state in pipeline.ledger.partitions.all()]
    assert len(found) == 3
    for partition in found:
        value = partition.values[0][1]
        at = entry(listed, NULL if value is None else value).location
        assert at == f"file:{lake.target}/{partition.path}"


def test_key_without_a_column_and_hours_are_texts(lake: SmallLake, listed: Metastore) -> None:
    lake.commit({1: 1})
    fields = {"hour": "hour(at)", "month": "month(at)", "country": "country"}
    target = {"partition_by": fields, "static_partition": {"country": "de"}}
    pipeline = lake.pipeline(target=target, commit={"trigger": "process-time"})

    load(pipeline)
    publish(pipeline)

    assert texts(made(listed).columns.keys) == [
        *("dt date", "hour string", "month string", "country string")
    ]
    found = entry(listed, "2026-02-01", "00", "2026-02", "de")
    assert found.location == f"file:{lake.target}/dt=2026-02-01/hour=00/month=2026-02/country=de"


def test_table_without_partitions_is_listed_alone(lake: SmallLake, listed: Metastore) -> None:
    lake.commit({1: 2})
    keys = {"target": {"partition_by": None}, "commit": {"trigger": "process-time"}}

    load(lake.pipeline(**keys))
    publish(lake.pipeline(**keys))

    assert made(listed).columns.keys == ()
    assert made(listed).location == f"file:{lake.target}"


def ids_at(location: str) -> list[int]:
    """Read a directory as an engine does that a metastore sends there."""
    found = ds.dataset(location.removeprefix("file:"), format="parquet").to_table()
    return sorted(found["id"].to_pylist()) if "id" in found.column_names else []


@pytest.mark.parametrize("write", ["append", "overwrite"])
@pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "whole"])
def test_readers_are_sent_from_one_whole_revision_to_the_next(
    lake: SmallLake, listed: Metastore, *, write: str, partitioned: bool
) -> None:
    keys: dict[str, Any] = {
        "target": {"layout": "revisions", "write": write},
        "commit": {"trigger": "process-time"},
    }
    keys["target"] |= {} if partitioned else {"partition_by": None}
    first, second = lake.commit({1: 3}), []
    load(lake.pipeline(**keys))
    publish(lake.pipeline(**keys))
    second = lake.commit({1: 2})
    load(lake.pipeline(**keys))
    expected = second if write == "overwrite" else [*first, *second]
    seen: list[list[int]] = []

    def look() -> None:
        location = entry(listed, *FIRST).location if partitioned else made(listed).location
        found = ids_at(location)
        if [found] != seen[-1:]:
            seen.append(found)

    publish(lake.pipeline(stopping_storage(Stopper(between=look)), **keys))
    look()

    assert seen == [first, expected]
    assert list(lake.pipeline(**keys).findings()) == []


def test_directory_that_the_metastore_still_lists_is_not_removed(
    lake: SmallLake, listed: Metastore
) -> None:
    lake.keys = merged(lake.keys, {"target": {"layout": "revisions", "keep_revisions": 1}})
    for _ in range(3):
        lake.commit({1: 1, 2: 1})
        load(lake.pipeline())
        publish(lake.pipeline())
    folders = sorted((lake.target / "dt=2026-02-01" / "_revisions").iterdir())
    newest = entry(listed, *FIRST)
    # As of a metastore that was put back from a copy.
    listed.put(replace(newest, location=f"file:{folders[0]}"))

    opened = lake.pipeline()
    opened.sweep(opened.garbage(NOW + 900 * DAY, timedelta(0)))

    left = sorted((lake.target / "dt=2026-02-01" / "_revisions").iterdir())
    assert left == [folders[0], folders[2]]
    listed.put(newest)
    opened.sweep(opened.garbage(NOW + 900 * DAY, timedelta(0)))
    assert sorted((lake.target / "dt=2026-02-01" / "_revisions").iterdir()) == [folders[2]]


def test_readers_are_sent_back_from_a_revision_that_cannot_be_finished(
    lake: SmallLake, listed: Metastore, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.keys = merged(lake.keys, {"target": {"layout": "revisions"}})
    ids = lake.commit({1: 2, 2: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    stood = entry(listed, *FIRST)
    lake.commit({1: 3})
    load(lake.pipeline())
    with monkeypatch.context() as broken:
        broken.setattr(SuccessFile, "commit", _fail)
        with pytest.raises(PolicyFailed):
            lake.pipeline().publish(day(1), "cli", NOW)
    begun = Path(entry(listed, *FIRST).location.removeprefix("file:"))
    assert entry(listed, *FIRST).revision == 2
    known = {path.name for path in Path(stood.location.removeprefix("file:")).iterdir()}
    for path in begun.iterdir():
        if path.name not in known:
            path.unlink()
    # The window is read again, and has no row any more.
    narrow = lake.pipeline(source={"read": {"filter": f"id <= {ids[-1]}"}})
    narrow.finish_load(narrow.replay(2, Run("again", "cli"), NOW), NOW, local)

    publish(narrow)

    assert entry(listed, *FIRST) == stood
    assert ids_at(stood.location) == ids[:2]
    assert not begun.exists()
    assert list(narrow.findings()) == []


def test_table_of_somebody_else_is_not_moved_from_revision_to_revision(
    lake: SmallLake, listed: Metastore
) -> None:
    keys: dict[str, Any] = {
        "target": {"layout": "revisions", "partition_by": None},
        "commit": {"trigger": "process-time"},
    }
    lake.commit({1: 1})
    columns = TableColumns(others(lake).columns.columns, ())
    listed.create(others(lake, columns=columns))
    opened = lake.pipeline(**keys)
    load(opened)

    (outcome,) = opened.publish_all("cli", NOW)

    assert "expected one of a table that the pipeline made" in str(outcome.error)
    assert not (lake.target / "_revisions").exists()


@pytest.mark.parametrize("on_empty", ["keep", "drop"])
def test_partition_that_an_overwrite_empties_is_taken_off_only_if_asked(
    lake: SmallLake, listed: Metastore, tmp_path: Path, on_empty: str
) -> None:
    landing = tmp_path / "landing"
    landing.mkdir()
    lake.source = {"kind": "files", "path": str(landing)}
    keys = {
        "event_time": None,
        "target": {
            "partition_by": {"dt": None, "country": "country"},
            "static_partition": {"country": "de"},
            "write": "overwrite",
            "metastore": {"on_empty": on_empty},
        },
        "commit": {"trigger": "process-time"},
    }
    for number, ids in enumerate([[1, 2], [], [3], []]):
        pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), landing / f"{number}.parquet")
        load(lake.pipeline(**keys))
        publish(lake.pipeline(**keys))

        found = listed.partition(("de",))
        assert (found is None) == (not ids and on_empty == "drop")
        assert found is None or found.rows == len(ids)
        assert (lake.target / "country=de" / "_SUCCESS").exists()


def test_table_follows_the_columns_of_the_pipeline_that_made_it(
    lake: SmallLake, listed: Metastore
) -> None:
    lake.commit({1: 1, 2: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    with lake.table.update_schema() as change:
        change.add_column("note", _string())
        change.add_column("inner", _struct())
    lake.commit({3: 1, 4: 1})

    load(lake.pipeline())
    publish(lake.pipeline())

    assert texts(made(listed).columns.columns) == [
        *("id bigint", "at timestamp", "amount bigint"),
        *("note string", "inner struct<a:int,b:array<double>>"),
    ]


def _string() -> Any:
    from pyiceberg.types import StringType

    return StringType()


def _struct() -> Any:
    from pyiceberg.types import DoubleType, IntegerType, ListType, NestedField, StructType

    inner = ListType(102, DoubleType(), element_required=False)
    return StructType(
        NestedField(100, "a", IntegerType(), required=False),
        NestedField(101, "b", inner, required=False),
    )


def others(lake: SmallLake, **changes: Any) -> ListedTable:
    """A table that somebody else listed for the directory of the pipeline."""
    columns = (("id", "bigint"), ("at", "timestamp"), ("amount", "bigint"), ("more", "string"))
    kept = TableColumns(
        tuple(ListedColumn(*column) for column in columns), (ListedColumn("dt", "string"),)
    )
    return replace(ListedTable(kept, str(lake.target), "parquet", None), **changes)


def without(columns: TableColumns, name: str) -> TableColumns:
    left = tuple(column for column in columns.columns if column.name != name)
    return replace(columns, columns=left)


def typed(columns: TableColumns, **types: str) -> TableColumns:
    return replace(
        columns,
        columns=tuple(
            replace(column, type=types.get(column.name, column.type)) for column in columns.columns
        ),
    )


def test_table_of_somebody_else_gets_partitions_and_stays_as_it_is(
    lake: SmallLake, listed: Metastore
) -> None:
    lake.commit({1: 1, 2: 1})
    listed.create(others(lake))
    before = made(listed)

    load(lake.pipeline())
    publish(lake.pipeline())

    assert made(listed) == before
    assert entry(listed, *FIRST).rows == 1


@pytest.mark.follows("ListedTableDiffers")
@pytest.mark.parametrize("part", ["location", "format", "keys", "column", "type", "pipeline"])
def test_table_that_is_another_one_is_refused_by_check_and_publish_until_it_is_gone(
    lake: SmallLake, listed: Metastore, uri: str, table: str, part: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    ids = lake.commit({1: 1, 2: 1})
    columns = others(lake).columns
    changes: dict[str, dict[str, Any]] = {
        "location": {"location": f"{lake.target}2"},
        "format": {"format": "orc"},
        "keys": {"columns": replace(columns, keys=(ListedColumn("day", "string"),))},
        "column": {"columns": without(columns, "amount")},
        "type": {"columns": typed(columns, amount="int")},
        "pipeline": {"pipeline": "another"},
    }
    listed.create(others(lake, **changes[part]))
    before = made(listed)
    lake.found_by_name(monkeypatch)
    lake.file()

    checked = CliRunner().invoke(app, ["check", "orders"])
    load(lake.pipeline())
    with pytest.raises(ListedTableDiffers):
        lake.pipeline().publish(day(1), "cli", NOW)

    assert checked.exit_code != 0
    assert "in the metastore: " in " ".join(checked.output.split())
    assert made(listed) == before
    assert lake.ids() == {}
    _drop(uri, table)
    publish(lake.pipeline())
    assert lake.ids() == {"dt=2026-02-01": ids[:1]}
    assert entry(listed, *FIRST).rows == 1


def _drop(uri: str, table: str) -> None:
    from tidegate.metastore.connections import connect

    transport, client = connect(uri)
    client.drop_table(*table.split("."), False)
    transport.close()


@pytest.mark.follows("MetastoreSilent")
def test_metastore_that_is_away_holds_the_marker_back_until_it_answers(
    lake: SmallLake, listed: Metastore, uri: str
) -> None:
    ids = lake.commit({1: 1, 2: 1})
    away = {"metastore": {"uri": "thrift://127.0.0.1:1"}}
    load(lake.pipeline(target=away))

    with pytest.raises(MetastoreSilent):
        lake.pipeline(target=away).publish(day(1), "cli", NOW)

    assert lake.ids() == {}
    several = {"metastore": {"uri": f"thrift://127.0.0.1:1, {uri}"}}
    publish(lake.pipeline(target=several))
    assert lake.ids() == {"dt=2026-02-01": ids[:1]}
    assert entry(listed, *FIRST).rows == 1


def test_metastore_that_was_restarted_is_asked_again(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with hive_server(tmp_path_factory.mktemp("restarted")) as server:
        listed = open_metastore(server.properties["uri"], "default.orders")
        listed.create(ListedTable(columns_of("a"), f"file:{tmp_path}", "parquet", "orders"))
        before = made(listed)
        server.stop()
        with pytest.raises(MetastoreSilent):
            listed.table()

        server.start()
        assert made(listed) == before
        server.stop()
        server.start()

        listed.put(ListedPartition(FIRST, f"file:{tmp_path}/dt=2026-02-01", 1))
        assert entry(listed, *FIRST).revision == 1


@pytest.mark.follows("DatabaseMissing")
def test_database_that_is_missing_is_named_until_it_is_made(
    lake: SmallLake, uri: str, tmp_path: Path
) -> None:
    from hive_metastore.ttypes import Database

    from tidegate.metastore.connections import connect

    lake.commit({1: 1, 2: 1})
    name = f"shop_{tmp_path.name}"
    elsewhere = {"metastore": {"table": f"{name}.orders"}}
    load(lake.pipeline(target=elsewhere))
    with pytest.raises(DatabaseMissing, match=f"CREATE DATABASE {name}"):
        lake.pipeline(target=elsewhere).publish(day(1), "cli", NOW)

    transport, client = connect(uri)
    client.create_database(Database(name, locationUri=f"file://{tmp_path}/shop"))
    transport.close()
    publish(lake.pipeline(target=elsewhere))

    assert entry(open_metastore(uri, f"{name}.orders"), *FIRST).rows == 1


@dataclass(frozen=True)
class Interrupted:
    """A metastore in which something happens before its columns are changed."""

    inner: Any
    happens: list[Any]

    def __getattr__(self, name: str) -> Any:
        if name == "widen" and self.happens:
            self.happens.pop()()
        return getattr(self.inner, name)


def context(tmp_path: Path, columns: TableColumns | None, **changes: Any) -> PolicyContext:
    usual = PolicyContext(
        pipeline="orders",
        table_root=str(tmp_path),
        partition=Partition((("dt", "2026-02-01"),)),
        partition_root=f"{tmp_path}/dt=2026-02-01",
        revision=1,
        key="key",
        files=("part-1",),
        rows=3,
        size_bytes=30,
        marker_name="_SUCCESS",
        marker="{}",
        storage=LocalStorage(),
        columns=columns,
        scratch=str(tmp_path / "scratch"),
    )
    return replace(usual, **changes)


def columns_of(*names: str) -> TableColumns:
    return TableColumns(
        tuple(ListedColumn(name, "int") for name in names), (ListedColumn("dt", "string"),)
    )


def test_columns_that_two_commits_add_at_once_are_all_there(
    listed: Metastore, uri: str, table: str, tmp_path: Path
) -> None:
    options = MetastoreConfig(uri=uri, table=table)
    plain = ListInMetastore(listed, options, "parquet")
    plain.commit(context(tmp_path, columns_of("a")))
    found = made(listed).columns.columns

    def meanwhile() -> None:
        listed.widen((*found, ListedColumn("b", "int")))

    disturbed = ListInMetastore(Interrupted(listed, [meanwhile]), options, "parquet")
    disturbed.commit(context(tmp_path, columns_of("a", "c")))

    assert sorted(texts(made(listed).columns.columns)) == ["a int", "b int", "c int"]


def test_columns_that_threads_add_at_once_are_all_there(
    listed: Metastore, uri: str, table: str, tmp_path: Path
) -> None:
    """One process publishes several partitions at once."""
    options = MetastoreConfig(uri=uri, table=table)
    ListInMetastore(listed, options, "parquet").commit(context(tmp_path, columns_of("a")))
    known = ["a"]
    for number in range(8):
        together = threading.Barrier(2)

        def add(name: str, together: threading.Barrier = together) -> None:
            one = ListInMetastore(open_metastore(uri, table), options, "parquet")
            together.wait(30)
            one.commit(context(tmp_path, columns_of("a", name)))

        names = [f"b{number}", f"c{number}"]
        with ThreadPoolExecutor(2) as threads:
            list(threads.map(add, names))
        known += names
        assert sorted(column.name for column in made(listed).columns.columns) == sorted(known)


def test_policy_that_is_repeated_changes_nothing(
    listed: Metastore, uri: str, table: str, tmp_path: Path
) -> None:
    plain = ListInMetastore(listed, MetastoreConfig(uri=uri, table=table), "parquet")
    plain.commit(context(tmp_path, columns_of("a")))
    before = made(listed), entry(listed, *FIRST)
    reading_only = Interrupted(listed, [])
    for name in ("create", "widen", "put", "drop"):
        object.__setattr__(reading_only, name, _fail)

    ListInMetastore(reading_only, plain.options, "parquet").commit(
        context(tmp_path, columns_of("a"))
    )

    assert (made(listed), entry(listed, *FIRST)) == before


@pytest.mark.follows("PartitionUnlistable")
def test_text_that_is_hives_name_for_null_is_not_listed(
    lake: SmallLake, listed: Metastore, tmp_path: Path
) -> None:
    landing = tmp_path / "landing"
    landing.mkdir()

    def write(name: str, shop: str) -> None:
        rows = pa.table({"id": [1, 2], "shop": [shop, None]})
        pq.write_table(rows, landing / f"{name}.parquet")

    write("a", NULL)
    lake.source = {"kind": "files", "path": str(landing)}
    keys: dict[str, Any] = {
        "event_time": None,
        "target": {"partition_by": {"dt": None, "shop": "shop"}, "write": "overwrite"},
        "commit": {"trigger": "process-time"},
    }
    load(lake.pipeline(**keys))

    errors = [it.error for it in lake.pipeline(**keys).publish_all("cli", NOW) if it.error]

    assert len(errors) == 1
    assert f"shop={NULL} cannot be listed" in str(errors[0])
    assert entry(listed, NULL).location.endswith("shop=__DEFAULT_PARTITION__")
    write("b", "corrected")
    load(lake.pipeline(**keys))
    list(lake.pipeline(**keys).publish_all("cli", NOW))
    assert entry(listed, "corrected").rows == entry(listed, NULL).rows == 1


@pytest.mark.follows("PartitionUnlistable")
def test_text_that_ends_with_a_blank_is_refused_before_the_commit_begins(
    lake: SmallLake, listed: Metastore, tmp_path: Path
) -> None:
    landing = tmp_path / "landing"
    landing.mkdir()
    towns = ["a", "a ", "A", " a", "a\t"]
    pq.write_table(pa.table({"id": range(5), "town": towns}), landing / "a.parquet")
    lake.source = {"kind": "files", "path": str(landing)}
    keys: dict[str, Any] = {
        "event_time": None,
        "target": {"partition_by": {"dt": None, "town": "town"}, "write": "overwrite"},
        "commit": {"trigger": "process-time"},
    }
    load(lake.pipeline(**keys))

    errors = [it.error for it in lake.pipeline(**keys).publish_all("cli", NOW) if it.error]

    assert len(errors) == 1
    assert "town=a  cannot be listed in a metastore: it ends with a blank" in str(errors[0])
    assert not (lake.target / "town=a ").exists()
    for town in ("a", "A", " a", "a\t"):
        assert entry(listed, town).rows == 1
    pq.write_table(pa.table({"id": [1], "town": ["corrected"]}), landing / "b.parquet")
    load(lake.pipeline(**keys))
    list(lake.pipeline(**keys).publish_all("cli", NOW))
    assert entry(listed, "corrected").rows == 1


def test_upserted_rows_are_listed_with_the_columns_of_their_windows(
    tmp_path: Path, uri: str, table: str, listed: Metastore
) -> None:
    keys: dict[str, Any] = {
        "target": {
            "metastore": {"uri": uri, "table": table},
            "write": "upsert",
            "keys": ["id"],
            "keys_stay": True,
        },
        "source": {"read": {"mode": "append"}},
        "commit": {"policies": ["metastore", "success-file"], "trigger": "process-time"},
    }
    lake = SmallLake(tmp_path / "upserted", keys=keys)
    lake.commit({1: 2})
    load(lake.pipeline())

    publish(lake.pipeline())

    assert texts(made(listed).columns.columns) == ["id bigint", "at timestamp", "amount bigint"]
    assert entry(listed, *FIRST).rows == 2


@pytest.mark.follows("ColumnsUnknown")
def test_table_whose_columns_nobody_knows_is_made_by_another_partition(
    listed: Metastore, uri: str, table: str, tmp_path: Path
) -> None:
    plain = ListInMetastore(listed, MetastoreConfig(uri=uri, table=table), "parquet")
    with pytest.raises(ColumnsUnknown):
        plain.commit(context(tmp_path, None))
    later = {"partition": Partition((("dt", "2026-02-02"),)), "partition_root": f"{tmp_path}/b"}

    plain.commit(context(tmp_path, columns_of("a"), **later))
    plain.commit(context(tmp_path, None))

    assert entry(listed, *FIRST).rows == entry(listed, *SECOND).rows == 3


def test_many_commits_at_once_make_one_table(
    uri: str, table: str, listed: Metastore, tmp_path: Path
) -> None:
    options = MetastoreConfig(uri=uri, table=table)
    problems: list[TidegateError] = []

    def commit(number: int) -> None:
        try:
            policy = ListInMetastore(open_metastore(uri, table), options, "parquet")
            partition = Partition((("dt", f"2026-02-{number:02d}"),))
            root = f"{tmp_path}/{partition.path}"
            said = {"partition": partition, "partition_root": root}
            policy.commit(context(tmp_path, columns_of("a", f"c{number}"), **said))
        except TidegateError as problem:
            problems.append(problem)

    threads = [threading.Thread(target=commit, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [problem for problem in problems if not isinstance(problem, MetastoreRefused)] == []
    for number in range(1, 9):
        commit(number)
    assert sorted(texts(made(listed).columns.columns)) == sorted(
        ["a int", *(f"c{number} int" for number in range(1, 9))]
    )
    assert all(listed.partition((f"2026-02-{number:02d}",)) for number in range(1, 9))
