"""A sweep beside a replay that brings back a plan which was never announced."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import event

from small_lake import NOW, SmallLake, day, later, load, local, publish
from tidegate.errors import FenceLost, TransientError
from tidegate.model.run import Run
from tidegate.storage import DirectoryEntry, LocalStorage, OsCalls

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tidegate.model.run import PlannedWindow
    from tidegate.pipeline import Pipeline
    from tidegate.pipeline.upkeep.sweeping import Garbage

NARROW: dict[str, Any] = {"source": {"read": {"filter": "id != 2"}, "split": {"max_rows": 2}}}
WIDE: dict[str, Any] = {"source": {"split": {"max_rows": 2}}}
ELSEWHERE = "cli:elsewhere:1:1:0.0"
"""A process of another host, of which only its time tells."""

KEPT, ALL = {"dt=2026-02-01": [1, 3, 4]}, {"dt=2026-02-01": [1, 2, 3, 4]}


class Died(BaseException):
    """The process ends here."""


@dataclass(frozen=True)
class Between(OsCalls):
    """System calls with something done once before one of them."""

    moment: Callable[[str, str], bool]
    """Call and path → whether this is the one."""
    act: Callable[[], None]
    acted: list[str] = field(default_factory=list, hash=False, compare=False)

    def scan(self, path: str) -> list[DirectoryEntry]:
        self._look("scan", path)
        return super().scan(path)

    def unlink(self, path: str) -> None:
        self._look("unlink", path)
        super().unlink(path)

    def _look(self, call: str, path: str) -> None:
        if not self.acted and self.moment(call, path):
            self.acted.append(path)
            self.act()


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    """Leave a plan of the first window that was staged, written down and never announced."""
    lake = SmallLake(tmp_path / "lake")
    lake.commit({1: 4, 2: 1})
    load(lake.pipeline(**WIDE))
    publish(lake.pipeline(**WIDE))
    pipeline = lake.pipeline(**NARROW)
    planned = pipeline.replay(1, Run("dies", "dead"), NOW)
    with local("local") as executor:
        pipeline.stage(planned[0], executor)
    event.listen(pipeline.ledger.engine, "before_cursor_execute", die_at_contributions)
    with pytest.raises(Died):
        pipeline.announce(planned, NOW)
    heir = later(lake.pipeline(**WIDE), timedelta(days=1))
    heir.finish_load(heir.replay(1, Run("heir", "cli"), NOW), NOW, local)
    return lake


def die_at_contributions(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
    if statement.startswith("DELETE FROM contribution"):
        raise Died


def never_announced(lake: SmallLake) -> Path:
    was_announced = lake.pipeline().ledger.plans.was_announced
    plans = {path.parent for path in lake.work.rglob("plan.json")}
    (found,) = [plan for plan in plans if not was_announced(1, plan.name)]
    return found


def garbage(pipeline: Pipeline) -> tuple[Garbage, ...]:
    return pipeline.garbage(datetime.now(UTC), timedelta(0))


def replay(lake: SmallLake, storage: LocalStorage | None = None) -> None:
    pipeline = lake.pipeline(storage, **NARROW)
    planned = pipeline.replay(1, Run("replay", "cli"), NOW)
    pipeline.finish_load(planned, NOW, local)


def assert_kept(lake: SmallLake) -> None:
    publish(lake.pipeline(**NARROW))
    assert lake.ids() == lake.listed_ids() == KEPT
    assert list(lake.pipeline(**NARROW).findings()) == []
    for path in lake.root.glob("ledger.db*"):
        path.unlink()
    lake.pipeline(**NARROW).restore_ledger()
    publish(lake.pipeline(**NARROW))
    assert lake.ids() == lake.listed_ids() == KEPT


def test_sweep_of_what_a_replay_brought_back_meanwhile_takes_nothing(lake: SmallLake) -> None:
    sweeper = lake.pipeline()
    found = garbage(sweeper)
    replay(lake)

    sweeper.sweep(found)

    assert found
    assert_kept(lake)


@pytest.mark.on_disk
def test_sweep_takes_nothing_of_a_window_that_a_replay_took_meanwhile(lake: SmallLake) -> None:
    sweeper = lake.pipeline()
    found = garbage(sweeper)
    calls = Between(
        lambda call, path: call == "scan" and path.endswith("/messages"),
        lambda: sweeper.sweep(found),
    )

    replay(lake, LocalStorage(calls))

    assert calls.acted
    assert_kept(lake)


def staged_again(pipeline: Pipeline, owner: str) -> tuple[PlannedWindow, ...]:
    """Replay the first window up to its announce."""
    planned = pipeline.replay(1, Run("replay", owner), NOW)
    with local("local") as executor:
        pipeline.stage(planned[0], executor)
    return planned


def test_sweep_takes_nothing_that_a_living_replay_has_staged(lake: SmallLake) -> None:
    sweeper, pipeline = lake.pipeline(), lake.pipeline(**NARROW)
    found = garbage(sweeper)
    planned = staged_again(pipeline, ELSEWHERE)

    listed, swept = garbage(sweeper), sweeper.sweep(found)

    assert found
    assert listed == swept == ()
    pipeline.announce(planned, NOW)
    assert_kept(lake)


@pytest.mark.parametrize("wakes", [True, False], ids=["asleep", "dead"])
def test_sweep_takes_what_a_replay_that_renews_no_more_has_staged(
    lake: SmallLake, wakes: bool
) -> None:
    pipeline = lake.pipeline(**NARROW)
    planned = staged_again(pipeline, ELSEWHERE)
    sweeper = later(lake.pipeline(), timedelta(days=1))

    swept = sweeper.sweep(garbage(sweeper))

    assert any(item.path.endswith(".parquet") for item in swept)
    assert garbage(sweeper) == ()
    if wakes:
        with pytest.raises(FenceLost):
            pipeline.announce(planned, NOW)
    replay(lake)
    assert_kept(lake)


def test_sweep_leaves_what_a_replay_has_staged_that_waits_between_two_tasks(
    lake: SmallLake,
) -> None:
    pipeline = lake.pipeline(**NARROW)
    planned = staged_again(pipeline, "airflow:orders_load/backfill__a")
    sweeper = later(lake.pipeline(), timedelta(days=30))

    assert garbage(sweeper) == ()

    pipeline.announce(planned, NOW)
    assert_kept(lake)


@pytest.mark.on_disk
@pytest.mark.parametrize("kind", ["sealed", "messages", "staged"])
def test_replay_that_comes_into_a_sweep_waits_and_stages_what_went(
    lake: SmallLake, kind: str
) -> None:
    refused: list[TransientError] = []

    def replay_meanwhile() -> None:
        with pytest.raises(TransientError) as caught:
            replay(lake)
        refused.append(caught.value)

    calls = Between(
        lambda call, path: call == "unlink" and f"/{kind}" in path and "/windows/" in path,
        replay_meanwhile,
    )
    sweeper = lake.pipeline(LocalStorage(calls))

    sweeper.sweep(garbage(sweeper))

    assert len(refused) == 1
    replay(lake)
    assert_kept(lake)


@pytest.mark.on_disk
@pytest.mark.parametrize("at", [0, 1, 2, 4], ids="at its {}. deletion".format)
@pytest.mark.parametrize("then", ["the ledger is lost", "a replay comes"])
def test_sweep_that_dies_leaves_no_plan_that_is_believed(
    lake: SmallLake, at: int, then: str
) -> None:
    dying = Between(_is_number(at), _die)
    sweeper = lake.pipeline(LocalStorage(dying))
    with pytest.raises(Died):
        sweeper.sweep(garbage(sweeper))

    if then == "a replay comes":
        replay(lake)
        assert_kept(lake)
        return
    for path in lake.root.glob("ledger.db*"):
        path.unlink()
    lake.pipeline(**WIDE).restore_ledger()
    publish(lake.pipeline(**WIDE))
    assert lake.ids() == lake.listed_ids() == ALL
    assert list(lake.pipeline(**WIDE).findings()) == []


def _is_number(wanted: int) -> Callable[[str, str], bool]:
    seen = [-1]

    def is_it(call: str, path: str) -> bool:
        seen[0] += call == "unlink" and "/windows/" in path
        return seen[0] == wanted

    return is_it


def _die() -> None:
    raise Died


def test_announce_that_never_was_goes_with_its_plan(lake: SmallLake) -> None:
    """A restoration would believe it, and find no messages."""
    sweeper, plan = lake.pipeline(), never_announced(lake)
    assert (plan / "sealed.json").exists()

    sweeper.sweep(garbage(sweeper))

    assert [path.name for path in plan.rglob("*.json")] == ["plan.json"]
    assert garbage(sweeper) == ()
    replay(lake)
    assert_kept(lake)


def test_plan_whose_files_went_without_their_messages_is_staged_again(lake: SmallLake) -> None:
    for path in never_announced(lake).rglob("*.parquet"):
        path.unlink()

    replay(lake)

    assert_kept(lake)
    assert lake.pipeline().ledger.partitions.get(day(1)).revision == 2


@pytest.mark.on_disk
def test_announce_that_a_sweep_takes_between_list_and_read_is_none(lake: SmallLake) -> None:
    sealed = never_announced(lake) / "sealed.json"

    class WhileReading(LocalStorage):
        def read_bytes(self, path: str) -> bytes:
            if path == str(sealed):
                sealed.unlink()
            return super().read_bytes(path)

    load(lake.pipeline(WhileReading()))

    assert not sealed.exists()
    replay(lake)
    assert_kept(lake)


@pytest.mark.on_disk
def test_staged_files_of_rows_that_were_read_again_since_go_once_that_stands(
    tmp_path: Path,
) -> None:
    lake = SmallLake(tmp_path / "lake")
    ids = lake.commit({1: 2, 2: 1, 9: 1})
    pipeline = lake.pipeline()
    load(pipeline)
    first = {path for path in lake.work.rglob("*.parquet") if "windows/000001" in str(path)}
    rebuilt = pipeline.rebuild([day(1)], Run("again", "cli"), NOW)
    pipeline.finish_load(rebuilt, NOW, local)

    before = sweep(pipeline)
    publish(pipeline)
    # The first day was published from the second window, the second one from the first.
    left = {path for path in first if path.exists()}
    swept = sweep(pipeline)
    publish(pipeline)

    assert before == set()
    assert swept < {str(path) for path in left}
    assert len(swept) == 1
    assert lake.ids() == {"dt=2026-02-01": ids[:2], "dt=2026-02-02": [ids[2]]}
    assert list(pipeline.findings()) == []
    again = pipeline.replay(1, Run("replay", "cli"), NOW)
    pipeline.finish_load(again, NOW, local)
    publish(pipeline)
    assert lake.ids() == {"dt=2026-02-01": ids[:2], "dt=2026-02-02": [ids[2]]}


def sweep(pipeline: Pipeline) -> set[str]:
    """Delete what nothing needs, of any age; return the staged files among it."""
    garbage = pipeline.garbage(datetime.now(UTC) + timedelta(days=1), timedelta(0))
    return {item.path for item in pipeline.sweep(garbage) if "/staged/" in item.path}


@pytest.mark.on_disk
def test_plan_of_which_one_file_is_young_stays_whole(lake: SmallLake) -> None:
    """A replay would trust a message whose files went."""
    sweeper, plan = lake.pipeline(), never_announced(lake)
    swept = {item.path for item in garbage(sweeper)}
    files = [path for path in plan.rglob("*") if str(path) in swept]
    old = (datetime.now(UTC) - timedelta(days=9)).timestamp()
    for path in files[1:]:
        os.utime(path, (old, old))

    found = sweeper.garbage(datetime.now(UTC), timedelta(days=1))

    assert len(files) > 2
    assert not {item.path for item in found} & {str(path) for path in files}
