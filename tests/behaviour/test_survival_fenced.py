"""An announce that a process wrote down after it had lost its fence never comes true."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from behaviour.test_survival_restored import (
    NARROW,
    BeforeSealed,
    lose,
    put_back,
    rebuild,
    replay,
    save,
)
from crash.scenario import ledger_content
from small_lake import NOW, SmallLake, day, load, look_again, publish
from tidegate.errors import FenceLost, LedgerBehind
from tidegate.model.run import Run
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.on_disk

FIRST = "dt=2026-02-01"
WHOLE = {"source": {"read": {"mode": "snapshot"}}}


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake")


@pytest.fixture
def ids(lake: SmallLake) -> list[int]:
    """Publish one window, and write down a second one that lost its fence; ids of the first day."""
    ids = lake.commit({1: 1, 2: 1})[:1]
    load(lake.pipeline())
    publish(lake.pipeline())
    ids += lake.commit({1: 1, 2: 1})[:1]
    asleep = LocalStorage(BeforeSealed(lambda: lake.pipeline().restore_ledger()))
    with pytest.raises(FenceLost):
        load(lake.pipeline(asleep))
    assert list((lake.work / "windows" / "000002").glob("*/sealed.json"))
    return ids


def longer_load(lake: SmallLake) -> list[int]:
    ids = lake.commit({1: 1, 2: 1})[:1]
    load(lake.pipeline())
    return ids


def load_of_the_same(lake: SmallLake) -> list[int]:
    load(lake.pipeline())
    return []


def two_loads(lake: SmallLake) -> list[int]:
    ids = longer_load(lake)
    ids += lake.commit({1: 1, 3: 1})[:1]
    load(lake.pipeline())
    return ids


def rebuild_before_a_load(lake: SmallLake) -> list[int]:
    rebuild(lake.pipeline())
    load(lake.pipeline())
    return []


def reload(lake: SmallLake) -> list[int]:
    ids = lake.commit({1: 1, 2: 1})[:1]
    load(lake.pipeline(**WHOLE))
    return ids


def load_after_one_that_was_given_back(lake: SmallLake) -> list[int]:
    ids = lake.commit({1: 1, 2: 1})[:1]
    pipeline = lake.pipeline()
    (taken,) = pipeline._loader._taker.take(Run("dropped", "cli"), NOW).windows
    assert pipeline.ledger.windows.give_back(taken.window.sequence, taken.attempt)
    load(pipeline)
    return ids


@pytest.mark.parametrize("lost", [False, True], ids=["ledger in use", "lost ledger"])
@pytest.mark.parametrize(
    "go_on",
    [
        longer_load,
        load_of_the_same,
        two_loads,
        rebuild_before_a_load,
        reload,
        load_after_one_that_was_given_back,
    ],
)
def test_announce_of_a_process_without_its_fence_is_not_restored(
    lake: SmallLake, ids: list[int], go_on: Callable[[SmallLake], list[int]], lost: bool
) -> None:
    ids = ids + go_on(lake)
    publish(lake.pipeline())
    before = ledger_content(lake.root)
    assert lake.ids()[FIRST] == ids
    if lost:
        lose(lake)

    lake.pipeline().restore_ledger()

    look_again(lake.pipeline(), NOW)
    after = ledger_content(lake.root)
    for table in ("window", "contribution", "revision", "publication"):
        assert after[table] == before[table], table
    ids += lake.commit({1: 1, 5: 1})[:1]
    load(lake.pipeline())
    publish(lake.pipeline())
    assert lake.ids()[FIRST] == lake.listed_ids()[FIRST] == ids
    assert list(lake.pipeline().findings()) == []


def test_reset_of_a_rebuild_is_kept_beside_a_load_that_never_was(
    lake: SmallLake, ids: list[int]
) -> None:
    rebuild(lake.pipeline(**NARROW))
    load(lake.pipeline())
    publish(lake.pipeline())
    assert lake.ids()[FIRST] == ids[1:]

    lake.pipeline().restore_ledger()
    publish(lake.pipeline())

    assert lake.ids()[FIRST] == lake.listed_ids()[FIRST] == ids[1:]


def test_replay_of_a_process_without_its_fence_is_not_restored_by_the_ledger_in_use(
    lake: SmallLake,
) -> None:
    ids = lake.commit({1: 2, 2: 1})[:2]
    load(lake.pipeline())
    publish(lake.pipeline())
    asleep = LocalStorage(BeforeSealed(lambda: lake.pipeline().restore_ledger()))
    with pytest.raises(FenceLost):
        replay(lake.pipeline(asleep, **NARROW), 1)
    assert len(list((lake.work / "windows" / "000001").glob("*/sealed.json"))) == 2

    lake.pipeline().restore_ledger()

    publish(lake.pipeline())
    assert lake.ids() == lake.listed_ids() == {FIRST: ids}
    replay(lake.pipeline(**NARROW), 1)
    publish(lake.pipeline(**NARROW))
    lake.pipeline(**NARROW).restore_ledger()
    publish(lake.pipeline(**NARROW))
    assert lake.ids() == lake.listed_ids() == {FIRST: ids[1:]}
    assert list(lake.pipeline().findings()) == []


@pytest.mark.parametrize("published", [False, True], ids=["pending", "published"])
def test_replay_after_one_that_was_fenced_off_is_missed_by_a_backup(
    lake: SmallLake, *, published: bool
) -> None:
    first = lake.commit({1: 3, 2: 1})[:3]
    load(lake.pipeline())
    publish(lake.pipeline())
    asleep = LocalStorage(BeforeSealed(lambda: lake.pipeline().restore_ledger()))
    with pytest.raises(FenceLost):
        replay(lake.pipeline(asleep, **NARROW), 1)
    backup = save(lake)
    replay(lake.pipeline(**NARROW), 1)
    if published:
        publish(lake.pipeline(**NARROW))

    put_back(lake, backup)

    with pytest.raises(LedgerBehind):
        lake.pipeline(**NARROW).propose(day(1), "cli", NOW)
    lake.pipeline(**NARROW).restore_ledger()
    publish(lake.pipeline(**NARROW))
    assert lake.ids()[FIRST] == lake.listed_ids()[FIRST] == first[1:]
    assert list(lake.pipeline(**NARROW).findings()) == []
