"""Partitions that are listed again as they stand, without publishing anything (PC-A14)."""

from __future__ import annotations

import json
import re
import shlex
import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from catalog_servers import CatalogServer, hive_server
from small_lake import NOW, SmallLake, day, load, publish
from tidegate.cli.app import app
from tidegate.cli.output import FAILED, MISUSED, NOTHING
from tidegate.commit.policies import SuccessFile
from tidegate.errors import ListedTableDiffers, PolicyFailed
from tidegate.metastore import open_metastore
from tidegate.metastore.connections import ask
from tidegate.model.finding import FindingKind
from tidegate.model.metastore import ListedPartition
from tidegate.pipeline.state.holders import process_owner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from hive_metastore.ThriftHiveMetastore import Client

    from tidegate.metastore.protocol import Metastore

pytestmark = pytest.mark.on_disk

FIRST, SECOND = ("2026-02-01",), ("2026-02-02",)
LISTS = {"commit": {"policies": ["metastore", "success-file"]}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CatalogServer]:
    with hive_server(tmp_path_factory.mktemp("hive")) as found:
        yield found


@pytest.fixture
def listed(server: CatalogServer, tmp_path: Path) -> Metastore:
    return open_metastore(server.properties["uri"], f"default.{tmp_path.name}")


@pytest.fixture
def lake(tmp_path: Path, server: CatalogServer, monkeypatch: pytest.MonkeyPatch) -> SmallLake:
    """A lake whose pipeline will list in a metastore, and does not yet."""
    lake = SmallLake(tmp_path / "lake")
    lake.found_by_name(monkeypatch)
    return lake


@pytest.fixture
def lists(server: CatalogServer, tmp_path: Path) -> dict[str, Any]:
    where = {"uri": server.properties["uri"], "table": f"default.{tmp_path.name}"}
    return {**LISTS, "target": {"metastore": where}}


def keep_one_column(database: str, name: str, client: Client) -> None:
    """Let a table have its first column alone, as another tool may."""
    table = client.get_table(database, name)
    del table.sd.cols[1:]
    client.alter_table(database, name, table)


def typed(line: str, code: int = 0) -> str:
    program, *arguments = shlex.split(line)
    assert program == "tidegate"
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


def fsck(code: int = FAILED) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(typed("tidegate fsck orders --json", code))["details"]
    return found


def published(lake: SmallLake, keys: dict[str, Any]) -> dict[str, tuple[str, int]]:
    """Publish two days without a metastore, the first one twice, then name one; the files."""
    lake.commit({1: 3, 2: 2, 3: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    lake.commit({1: 2})
    load(lake.pipeline())
    publish(lake.pipeline())
    lake.keys = keys
    lake.file()
    return lake.stamps()


def entry(metastore: Metastore, *values: str) -> ListedPartition:
    found = metastore.partition(values)
    assert found is not None
    return found


def test_what_was_published_before_the_policy_is_listed_as_it_stands(
    lake: SmallLake, listed: Metastore, lists: dict[str, Any]
) -> None:
    before = published(lake, lists)

    said = json.loads(typed("tidegate relist orders --json"))

    assert [item["partition"] for item in said["listed"]] == ["dt=2026-02-01", "dt=2026-02-02"]
    assert "is not listed" in said["listed"][0]["before"]
    first, second = entry(listed, *FIRST), entry(listed, *SECOND)
    assert (first.revision, first.rows, first.files) == (2, 5, 2)
    assert (second.revision, second.rows, second.files) == (1, 2, 1)
    # Neither a file nor a marker, nor a revision.
    assert lake.stamps() == before
    assert [it.revision for it in lake.pipeline().ledger.partitions.all()] == [2, 1, 0]
    assert "2 of 2 published partitions are listed" in typed("tidegate relist orders", NOTHING)
    assert fsck(0) == []


def test_partition_listed_again_has_the_entry_of_its_commit(
    lake: SmallLake, listed: Metastore, lists: dict[str, Any]
) -> None:
    lake.keys = lists
    published(lake, lists)
    table, first = listed.table(), entry(listed, *FIRST)
    listed.drop(FIRST)

    typed("tidegate relist orders dt=2026-02-01")

    assert (listed.table(), entry(listed, *FIRST)) == (table, first)


CHANGES: dict[str, tuple[Callable[[ListedPartition], ListedPartition | None], str]] = {
    "dropped": (lambda _: None, "is not listed"),
    "moved": (lambda it: replace(it, location=f"{it.location}-copy"), "-copy"),
    "older": (lambda it: replace(it, revision=1), "as 1, and revision 2 stands"),
    "counts": (lambda it: replace(it, rows=99), "with other counts"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_entry_that_somebody_changed_is_found_and_mended_as_the_finding_says(
    lake: SmallLake, listed: Metastore, lists: dict[str, Any], change: str
) -> None:
    published(lake, lists)
    typed("tidegate relist orders")
    first = entry(listed, *FIRST)
    makes, told = CHANGES[change]
    other = makes(first)
    listed.drop(FIRST) if other is None else listed.put(other)

    (found,) = fsck()

    assert found["kind"] == FindingKind.LIST_DIFFERS.name.lower().replace("_", "-")
    assert told in found["text"]
    assert found["where"] == "dt=2026-02-01"
    (command,) = found["commands"]
    assert command == "tidegate relist orders dt=2026-02-01"
    typed(command)
    assert entry(listed, *FIRST) == first
    assert fsck(0) == []


def test_columns_that_the_table_lost_are_found_and_listed_again(
    lake: SmallLake, listed: Metastore, lists: dict[str, Any]
) -> None:
    published(lake, lists)
    typed("tidegate relist orders")
    table = listed.table()
    assert table is not None
    where = lists["target"]["metastore"]
    ask(where["uri"], partial(keep_one_column, *where["table"].split(".")))

    (*_, found) = fsck()

    assert "is listed without at, amount" in found["text"]
    typed(found["commands"][0])
    again = listed.table()
    assert again is not None
    assert {*again.columns.columns} == {*table.columns.columns}
    assert fsck(0) == []


@pytest.mark.follows("ListedTableDiffers")
def test_table_that_is_another_one_refuses_the_list_until_it_is_gone(
    lake: SmallLake, listed: Metastore, lists: dict[str, Any], server: CatalogServer, tmp_path: Path
) -> None:
    published(lake, lists)
    typed("tidegate relist orders")
    table = listed.table()
    assert table is not None
    _drop(server, tmp_path.name)
    listed.create(replace(table, location=f"{tmp_path}/elsewhere"))

    said = " ".join(typed("tidegate relist orders", FAILED).split())
    (found,) = fsck()

    assert found["error"] == ListedTableDiffers.__name__
    assert "in the metastore: location: expected" in said
    _drop(server, tmp_path.name)
    (command,) = re.findall(r"`(tidegate relist [^`]*)`", found["text"])
    typed(command)
    assert listed.table() == table
    assert fsck(0) == []


def _drop(server: CatalogServer, name: str) -> None:
    from tidegate.metastore.connections import connect

    transport, client = connect(server.properties["uri"])
    client.drop_table("default", name, False)
    transport.close()


@pytest.mark.follows("CommitUnfinished")
def test_partition_whose_commit_died_is_left_to_the_publish_that_ends_it(
    lake: SmallLake, listed: Metastore, lists: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    published(lake, lists)
    lake.commit({1: 1})
    load(lake.pipeline())

    def die(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as dying:
        dying.setattr(SuccessFile, "commit", die)
        with pytest.raises(PolicyFailed):
            lake.pipeline().publish(day(1), process_owner("cli"), NOW)
    assert entry(listed, *FIRST).revision == 3

    raw = json.loads(typed("tidegate relist orders --json", FAILED))

    assert [item["partition"] for item in raw["listed"]] == ["dt=2026-02-02"]
    (failed,) = raw["failed"]
    (command,) = re.findall(r"`(tidegate publish [^`]*)`", failed["error"])
    # The revision that stood before is not listed in place of the one that comes.
    assert entry(listed, *FIRST).revision == 3
    typed(command)
    assert entry(listed, *FIRST).revision == 3
    typed("tidegate relist orders", NOTHING)


def test_partition_that_a_run_works_on_is_named_and_the_others_are_listed(
    lake: SmallLake, listed: Metastore, lists: dict[str, Any]
) -> None:
    published(lake, lists)
    lake.commit({1: 1})
    load(lake.pipeline())
    lake.pipeline().propose(day(1), "airflow:orders_publish/another", NOW)

    raw = json.loads(typed("tidegate relist orders --json", FAILED))

    assert [item["partition"] for item in raw["failed"]] == ["dt=2026-02-01"]
    assert listed.partition(FIRST) is None
    assert entry(listed, *SECOND).revision == 1


@pytest.mark.follows("ListsNothing")
def test_pipeline_without_a_list_is_refused_until_it_has_one(
    lake: SmallLake, listed: Metastore, lists: dict[str, Any]
) -> None:
    published(lake, {})

    said = " ".join(typed("tidegate relist orders", FAILED).split())

    assert "found success-file. Name `metastore` there" in said
    lake.file(**lists)
    typed("tidegate relist orders")
    assert entry(listed, *FIRST).rows == 5


@pytest.mark.follows("MetastoreSilent")
def test_metastore_that_is_away_is_told_once_until_it_answers(
    lake: SmallLake, lists: dict[str, Any]
) -> None:
    published(lake, lists)
    lake.file(target={"metastore": {"uri": "thrift://127.0.0.1:1"}})

    (found,) = fsck()
    raw = json.loads(typed("tidegate relist orders --json", FAILED))

    assert found["error"] == "MetastoreSilent"
    assert len(raw["failed"]) == 2
    lake.file()
    typed("tidegate relist orders")
    assert fsck(0) == []


@pytest.mark.parametrize("on_empty", ["keep", "drop"])
def test_partition_without_files_is_listed_as_the_pipeline_file_says(
    lake: SmallLake, listed: Metastore, lists: dict[str, Any], on_empty: str
) -> None:
    lists["target"]["metastore"]["on_empty"] = on_empty
    ids = lake.commit({1: 2, 2: 1})
    lake.keys = lists
    load(lake.pipeline())
    publish(lake.pipeline())
    keys = {"source": {"read": {"filter": f"id > {max(ids)}"}}}
    rebuilt = lake.pipeline(**keys)
    rebuilt.finish_load(rebuilt.rebuild([day(1)], _run(), NOW), NOW, _local())
    publish(rebuilt)
    stood = listed.partition(FIRST)
    assert (stood is None) == (on_empty == "drop")
    listed.put(replace(stood or _of_before(lake), rows=7))

    (found,) = fsck()
    typed(found["commands"][0])

    assert listed.partition(FIRST) == stood
    assert fsck(0) == []


def _of_before(lake: SmallLake) -> ListedPartition:
    return ListedPartition(FIRST, f"{lake.target}/dt=2026-02-01", 1)


def _run() -> Any:
    from tidegate.model.run import Run

    return Run("rebuild", "cli")


def _local() -> Any:
    from small_lake import local

    return local


OWN_LIST = """
import os

class Listed:
    def __init__(self, folder):
        self.folder = folder

    def _entry(self, context):
        return os.path.join(self.folder, str(context.partition))

    def commit(self, context):
        os.makedirs(self.folder, exist_ok=True)
        with open(self._entry(context), "w") as entry:
            entry.write(str(context.revision))

    def differs(self, context):
        path = self._entry(context)
        if not os.path.exists(path):
            return "it is not in our list"
"""


def test_list_of_a_policy_of_ones_own_is_compared_and_written_again(
    lake: SmallLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_list.py").write_text(OWN_LIST)
    own = {"custom": "own_list:Listed", "parameters": [str(tmp_path / "list")]}
    published(lake, {"commit": {"policies": [own, "success-file"]}})

    assert [it["text"].split(";")[0] for it in fsck()] == [
        "dt=2026-02-01: it is not in our list",
        "dt=2026-02-02: it is not in our list",
    ]
    typed("tidegate relist orders")

    assert (tmp_path / "list" / "dt=2026-02-01").read_text() == "2"
    assert fsck(0) == []


def test_policy_that_is_importable_elsewhere_only_is_nothing_that_fsck_finds(
    lake: SmallLake,
) -> None:
    published(lake, {"commit": {"policies": [{"custom": "elsewhere:Listed"}, "success-file"]}})

    assert fsck(0) == []


def test_partition_that_is_unknown_is_bad_usage(lake: SmallLake, lists: dict[str, Any]) -> None:
    published(lake, lists)

    assert "dt=2026-02-20" in typed("tidegate relist orders dt=2026-02-20 --json", FAILED)
    typed("tidegate relist orders day=2026-02-20", MISUSED)
