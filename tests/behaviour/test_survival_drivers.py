"""Two drivers on one pipeline, in real processes: killed, stopped, and woken after a successor."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from driver import Driver
from small_lake import NOW, SmallLake, day, later, load, publish
from tidegate.errors import PartitionBusy, WindowOpen

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.on_disk

CLAIM = timedelta(minutes=2)
"""After this time without a renewal a claim has run out."""


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    lake = SmallLake(tmp_path / "lake")
    lake.target.parent.mkdir()
    return lake


@pytest.fixture
def drivers() -> Iterator[list[Driver]]:
    started: list[Driver] = []
    yield started
    for driver in started:
        driver.kill()


def test_second_driver_waits_for_the_first_and_takes_over_once_it_is_killed(
    lake: SmallLake, drivers: list[Driver]
) -> None:
    ids = lake.commit({1: 5, 2: 1})
    first = Driver.start(lake, "load", NOW, stop="create part-")
    drivers.append(first)
    second = lake.pipeline()

    with pytest.raises(WindowOpen, match=f"cli:.*:{first.process.pid}:"):
        load(second, owner="second")
    first.kill()
    load(second, owner="second")
    publish(second)

    assert lake.ids() == {"dt=2026-02-01": ids[:5]}
    assert [item.attempt for item in second.ledger.windows.all()] == [2]


@pytest.mark.follows("FenceLost")
def test_stale_loader_woken_after_its_successor_announces_nothing(
    lake: SmallLake, drivers: list[Driver]
) -> None:
    ids = lake.commit({1: 5, 2: 1})
    first = Driver.start(lake, "load", NOW, stop="create part-")
    drivers.append(first)
    second = later(lake.pipeline(), CLAIM)
    load(second, owner="second")
    publish(second)
    before = lake.stamps(), second.ledger.windows.all(), second.ledger.contributions.to(day(1))

    assert first.wake() == "FenceLost"

    after = lake.stamps(), second.ledger.windows.all(), second.ledger.contributions.to(day(1))
    assert after == before
    assert lake.ids() == {"dt=2026-02-01": ids[:5]}


@pytest.mark.follows("FenceLost")
def test_stale_committer_woken_after_its_successor_changes_nothing(
    lake: SmallLake, drivers: list[Driver]
) -> None:
    """PC-V32."""
    ids = lake.commit({1: 5, 2: 1})
    pipeline = lake.pipeline()
    load(pipeline)
    first = Driver.start(lake, "publish", NOW, after=r"link \.1-[0-9a-f-]+\.json", stop="open_lock")
    drivers.append(first)
    publish(later(pipeline, CLAIM), "second")
    before = lake.stamps(), pipeline.ledger.publications.revisions(day(1))

    assert first.wake() == "FenceLost"

    assert (lake.stamps(), pipeline.ledger.publications.revisions(day(1))) == before
    assert pipeline.ledger.partitions.get(day(1)).owner is None
    assert lake.ids() == {"dt=2026-02-01": ids[:5]}


def test_stale_publish_that_finds_its_work_done_changes_nothing(
    lake: SmallLake, drivers: list[Driver]
) -> None:
    """It held the partition since before the gate, so that the fence tells it."""
    lake.commit({1: 5, 2: 1})
    pipeline = lake.pipeline()
    load(pipeline)
    first = Driver.start(lake, "publish", NOW, after=r"link \.1-.*gate\.json", stop="open_lock")
    drivers.append(first)
    publish(later(pipeline, CLAIM), "second")
    before = lake.stamps(), pipeline.ledger.publications.revisions(day(1))

    assert first.wake() == "FenceLost"

    assert (lake.stamps(), pipeline.ledger.publications.revisions(day(1))) == before
    assert pipeline.ledger.partitions.get(day(1)).owner is None


def test_commit_step_that_finds_its_work_done_changes_nothing(lake: SmallLake) -> None:
    """It begins after the claim of the step before has ended; the ledger tells it."""
    lake.commit({1: 5, 2: 1})
    pipeline = lake.pipeline()
    load(pipeline)
    proposal = pipeline.propose(day(1), "first", NOW)
    assert proposal is not None
    pipeline.gate(day(1), proposal.digest, "first", NOW)
    publish(later(lake.pipeline(), CLAIM), "second")
    before = lake.stamps(), pipeline.ledger.publications.revisions(day(1))

    assert pipeline.commit(day(1), proposal.digest, "first", NOW).revision == 1

    assert (lake.stamps(), pipeline.ledger.publications.revisions(day(1))) == before
    assert pipeline.ledger.partitions.get(day(1)).owner is None


@pytest.mark.follows("PartitionBusy")
@pytest.mark.parametrize("owner", ["second", "scheduled__a"], ids=["another run", "a retry"])
@pytest.mark.parametrize("place", ["link part-", "unlink _SUCCESS", "link ._SUCCESS"])
def test_committer_stopped_while_it_moves_files_ends_right(
    lake: SmallLake, drivers: list[Driver], owner: str, place: str
) -> None:
    ids = lake.commit({1: 5, 2: 1})
    pipeline = lake.pipeline()
    load(pipeline)
    first = Driver.start(lake, "publish", NOW, owner="scheduled__a", stop=place)
    drivers.append(first)

    with pytest.raises(PartitionBusy, match=f"scheduled__a .process {first.process.pid} "):
        later(pipeline, CLAIM).publish(day(1), owner, NOW)
    assert first.wake() == "done"

    assert [item.state for item in publish(later(pipeline, CLAIM), owner)] == ["pending"]
    assert lake.ids() == {"dt=2026-02-01": ids[:5]}
    assert pipeline.ledger.partitions.get(day(1)).revision == 1


def test_committer_killed_while_it_moves_files_is_succeeded_at_once(
    lake: SmallLake, drivers: list[Driver]
) -> None:
    ids = lake.commit({1: 5, 2: 1})
    pipeline = lake.pipeline()
    load(pipeline)
    first = Driver.start(lake, "publish", NOW, stop="link part-")
    drivers.append(first)
    first.kill()

    publish(pipeline, "second")

    assert lake.ids() == {"dt=2026-02-01": ids[:5]}
