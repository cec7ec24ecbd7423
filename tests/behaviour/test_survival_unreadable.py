"""A directory that cannot be listed or read: nothing is deleted, nothing is restored, and told."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from refusing import BlindCalls
from small_lake import NOW, SmallLake, load, publish, stamps
from tidegate.errors import StorageDenied
from tidegate.model.finding import FindingKind
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.on_disk

YEARS_LATER = NOW + timedelta(days=1000)


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    lake = SmallLake(tmp_path / "lake")
    lake.commit({1: 3, 2: 2, 3: 1})
    load(lake.pipeline())
    return lake


def blind(place: Path) -> LocalStorage:
    return LocalStorage(BlindCalls(str(place)))


def directory(lake: SmallLake, name: str) -> Path:
    return next(lake.work.rglob(name))


@pytest.mark.parametrize("name", ["windows", "messages", "staged"])
def test_gc_with_an_unreadable_directory_deletes_nothing(lake: SmallLake, name: str) -> None:
    before = stamps(lake.work)
    pipeline = lake.pipeline(blind(directory(lake, name)))

    with pytest.raises(StorageDenied, match=name):
        pipeline.sweep(pipeline.garbage(YEARS_LATER, timedelta(0)))

    assert stamps(lake.work) == before
    publish(lake.pipeline())
    assert sum(len(ids) for ids in lake.ids().values()) == 5


@pytest.mark.parametrize("name", ["windows", "000001"])
def test_rebuild_of_the_ledger_with_an_unreadable_directory_restores_nothing(
    lake: SmallLake, name: str
) -> None:
    for path in lake.root.glob("ledger.db*"):
        path.unlink()

    with pytest.raises(StorageDenied, match=name):
        lake.pipeline(blind(directory(lake, name))).restore_ledger()

    assert lake.pipeline().ledger.pipeline.find() is None
    assert lake.pipeline().restore_ledger().windows == 1


def test_fsck_with_an_unreadable_partition_tells_it_and_what_is_wrong_with_others(
    lake: SmallLake,
) -> None:
    publish(lake.pipeline())
    lost = lake.target / "dt=2026-02-02" / "_SUCCESS"
    lost.unlink()
    unreadable = lake.target / "dt=2026-02-01"

    found = list(lake.pipeline(blind(unreadable)).inspect())

    assert [(it.kind, it.where) for it in found] == [
        (FindingKind.REFUSED, str(unreadable)),
        (FindingKind.MARKER_LOST, str(lost)),
    ]


def test_publish_with_one_unreadable_partition_publishes_the_others(lake: SmallLake) -> None:
    staged = sorted(lake.work.rglob("staged/**/dt=2026-02-01/*.parquet"))

    outcomes = list(lake.pipeline(blind(staged[0])).publish_all("cli", NOW))

    states = {str(item.partition): item.state for item in outcomes}
    assert states == {
        "dt=2026-02-01": "failed",
        "dt=2026-02-02": "committed",
        "dt=2026-02-03": "pending",
    }
    assert "Permission denied" in str(outcomes[0].error)
    assert sorted(lake.ids()) == ["dt=2026-02-02"]
    publish(lake.pipeline())
    assert sorted(lake.ids()) == ["dt=2026-02-01", "dt=2026-02-02"]
