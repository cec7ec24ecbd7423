"""One suite over every catalog that runs here: an Iceberg table that is published to."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.catalog import load_catalog

from catalog_servers import catalog_server
from lake_target import LakeToLake
from small_lake import NOW, day, decide, load, publish
from tidegate.errors import TableNamespaceMissing, TargetTableMoved
from tidegate.model.held_branch import held_branch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyiceberg.table import Table

pytestmark = pytest.mark.on_disk

FIRST = "2026-02-01"
HOLDING: dict[str, Any] = {"rows": [{"name": "few", "where": "id < 4", "on_failure": "hold"}]}


@pytest.fixture(
    scope="module", params=["sql", "rest", pytest.param("hive", marks=pytest.mark.slow)]
)
def properties(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    place = tmp_path_factory.mktemp(request.param)
    with catalog_server(request.param, place) as server:
        uri = f"sqlite:///{place}/catalog.db"
        sql = {"name": "lake", "type": "sql", "uri": uri, "warehouse": f"file://{place}"}
        # The metastore of Spark's jars is older than the type of times with a zone.
        older = {"hive.hive2-compatible": "true"} if request.param == "hive" else {}
        yield {**server.properties, **older} if server else sql


@pytest.fixture
def lake(properties: dict[str, str], tmp_path: Path) -> LakeToLake:
    """A lake whose target is in the catalog; a namespace of its own for each test."""
    made = LakeToLake(tmp_path / "lake")
    space = tmp_path.name.replace("[", "_").replace("]", "").replace("-", "_")
    made.keys["target"] |= {"catalog": properties, "table": f"{space}.orders"}
    return made


def table(lake: LakeToLake) -> Table:
    target = lake.keys["target"]
    return load_catalog(**target["catalog"]).load_table(target["table"])


def rows(lake: LakeToLake, branch: str = "main") -> dict[str, list[int]]:
    found = table(lake)
    ref = found.metadata.refs.get(branch)
    read = found.scan(snapshot_id=ref.snapshot_id).to_arrow() if ref else found.scan().to_arrow()
    days: dict[str, list[int]] = {}
    for dt, number in zip(read["dt"].to_pylist(), read["id"].to_pylist(), strict=True):
        days.setdefault(dt, []).append(number)
    return {key: sorted(days[key]) for key in sorted(days)}


def make_namespace(lake: LakeToLake) -> None:
    target = lake.keys["target"]
    load_catalog(**target["catalog"]).create_namespace(target["table"].partition(".")[0])


def test_life_of_a_table(lake: LakeToLake) -> None:
    first = lake.commit({1: 5, 2: 2, 3: 1})
    load(lake.pipeline())
    with pytest.raises(TableNamespaceMissing):
        lake.pipeline().publish(day(1), "cli", NOW)
    make_namespace(lake)
    publish(lake.pipeline())
    assert rows(lake) == {FIRST: first[:5], "2026-02-02": first[5:7]}

    again = lake.commit({1: 2, 4: 1})
    load(lake.pipeline(**HOLDING))
    lake.pipeline(**HOLDING).publish(day(1), "cli", NOW)
    held = table(lake).metadata.refs[held_branch(day(1))].snapshot_id
    assert rows(lake, held_branch(day(1)))[FIRST] == sorted([*first[:5], *again[:2]])
    assert rows(lake)[FIRST] == first[:5]
    decide(lake.pipeline(**HOLDING), day(1))
    lake.pipeline(**HOLDING).publish(day(1), "cli", NOW)
    assert rows(lake)[FIRST] == sorted([*first[:5], *again[:2]])
    assert table(lake).metadata.refs["main"].snapshot_id == held
    assert {*table(lake).metadata.refs} == {"main"}
    assert list(lake.pipeline().findings()) == []

    lake.keys["target"]["write"] = None
    table(lake).delete(f"dt = '{FIRST}'")
    lake.commit({1: 1, 5: 1})
    load(lake.pipeline())
    with pytest.raises(TargetTableMoved):
        lake.pipeline().publish(day(1), "cli", NOW)


def test_first_revision_can_be_held(lake: LakeToLake) -> None:
    make_namespace(lake)
    ids = lake.commit({1: 5, 2: 1})
    load(lake.pipeline(**HOLDING))

    publish(lake.pipeline(**HOLDING))

    assert rows(lake, held_branch(day(1))) == {FIRST: ids[:5]}
    assert rows(lake) == {}


def test_partitions_published_at_once_are_all_there(lake: LakeToLake) -> None:
    make_namespace(lake)
    ids = lake.commit(dict.fromkeys(range(1, 6), 2) | {9: 1})
    load(lake.pipeline())
    failures: list[BaseException] = []
    opened = {number: lake.pipeline() for number in range(1, 6)}

    def run(number: int) -> None:
        try:
            opened[number].publish(day(number), f"run-{number}", NOW)
        except BaseException as failed:  # noqa: BLE001 (of a thread)
            failures.append(failed)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(1, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert [number for found in rows(lake).values() for number in found] == ids[:-1]
    assert len(table(lake).snapshots()) == 5
