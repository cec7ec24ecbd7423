"""Files of the work directory that went: a load or a replay makes them again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from small_lake import NOW, SmallLake, day, load, local, publish
from tidegate.errors import TidegateError
from tidegate.model.run import Announced, PlannedWindow, Run

if TYPE_CHECKING:
    from pathlib import Path

FIRST, SECOND = "dt=2026-02-01", "dt=2026-02-02"


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake", keys={"commit": {"trigger": "process-time"}})


def replay(lake: SmallLake, sequence: int) -> tuple[PlannedWindow, Announced]:
    pipeline = lake.pipeline()
    (planned,) = pipeline.replay(sequence, Run("again", "cli"), NOW)
    return planned, pipeline.finish_load((planned,), NOW, local)


def files(lake: SmallLake, sequence: int, name: str) -> list[Path]:
    return sorted((lake.work / "windows" / f"{sequence:06d}").glob(f"*/{name}"))


def check_stands(lake: SmallLake, ids: dict[str, list[int]]) -> None:
    """Compare what stands by marker and by listing with the source; nothing is left over."""
    assert lake.ids() == lake.listed_ids() == ids
    assert list(lake.pipeline().findings()) == []


@pytest.mark.parametrize("lost", ["splits.jsonl", "plan.json", "*.json*"])
@pytest.mark.parametrize("begun", [False, True], ids=["planned", "staged"])
def test_open_window_that_lost_a_file_of_its_plan_is_planned_again(
    lake: SmallLake, lost: str, begun: bool
) -> None:
    ids = lake.commit({1: 4, 2: 1})
    pipeline = lake.pipeline()
    (planned,) = pipeline.plan(Run("dead", "cli"), NOW)
    if begun:
        with local("local") as executor:
            pipeline.stage(planned, executor)
    found = files(lake, 1, lost)
    assert found
    for path in found:
        path.unlink()

    load(lake.pipeline())
    publish(lake.pipeline())

    assert {path.name for path in files(lake, 1, "*.json*")} >= {"plan.json", "splits.jsonl"}
    assert {path.parent.name for path in files(lake, 1, "plan.json")} == {planned.digest}
    check_stands(lake, {FIRST: ids[:4], SECOND: ids[4:]})


def test_replay_stages_what_lost_its_message_before_it_was_published(lake: SmallLake) -> None:
    ids = lake.commit({1: 4, 2: 1})
    load(lake.pipeline())
    ids += lake.commit({1: 2, 2: 1})
    load(lake.pipeline())
    (message,) = files(lake, 2, "messages/*.json")
    content = message.read_bytes()
    message.unlink()
    with pytest.raises(TidegateError):
        lake.pipeline().publish(day(1), "cli", NOW)

    planned, announced = replay(lake, 2)
    publish(lake.pipeline())

    assert (planned.sealed, planned.pending, announced.partitions) == (True, 1, ())
    assert message.exists()
    assert len(content) == len(message.read_bytes())
    check_stands(lake, {FIRST: ids[:4] + ids[5:7], SECOND: [ids[4], ids[7]]})


def test_replay_stages_what_one_of_its_partitions_still_wants(lake: SmallLake) -> None:
    ids = lake.commit({1: 4, 2: 1})
    load(lake.pipeline())
    lake.pipeline().publish(day(1), "cli", NOW)
    before = lake.stamps()
    (message,) = files(lake, 1, "messages/*.json")
    message.unlink()

    replay(lake, 1)
    publish(lake.pipeline())

    assert lake.stamps().items() >= before.items()
    check_stands(lake, {FIRST: ids[:4], SECOND: ids[4:]})


def test_replay_of_a_window_that_is_all_published_wants_no_message(lake: SmallLake) -> None:
    ids = lake.commit({1: 4, 2: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    before = lake.stamps()
    (message,) = files(lake, 1, "messages/*.json")
    message.unlink()

    planned, announced = replay(lake, 1)

    assert (planned.sealed, planned.pending, announced.partitions) == (True, 0, ())
    assert not message.exists()
    assert lake.stamps() == before
    check_stands(lake, {FIRST: ids[:4], SECOND: ids[4:]})
