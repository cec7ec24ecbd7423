"""Runs that overlap between reading the ledger, looking at the source, and taking a window.

Each test lets another run do something whole at the moment when a run has just looked at the
source: that is where a slow catalog, or a process that sleeps, lets others pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from small_lake import NOW, SmallLake, day, interval, known, load, local, merged, publish
from tidegate.errors import CursorExpired, HistoryTruncated
from tidegate.model.run import Run
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tidegate.pipeline import Pipeline

GO_ON = {"on_expired_cursor": "from_oldest"}
BEGIN_ANEW = {"on_expired_cursor": "full_reload", "on_off_lineage": "reset"}


@dataclass
class SlowTimeline:
    """A source's timeline behind which other runs pass, once, just after it was looked at."""

    timeline: Any
    meanwhile: Callable[[], None] | None
    looks: int = 0

    def pin(self, *asked: Any, **keys: Any) -> Any:
        self.looks += 1
        found = self.timeline.pin(*asked, **keys)
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self.timeline, name)


def slow(pipeline: Pipeline, meanwhile: Callable[[], None]) -> Pipeline:
    source: Any = pipeline.source
    source.timeline = SlowTimeline(source.timeline, meanwhile)
    return pipeline


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake")


def rebuild(pipeline: Pipeline, *days: int, owner: str = "rebuild") -> None:
    planned = pipeline.rebuild([day(number) for number in days], Run(owner, owner), NOW)
    pipeline.finish_load(planned, NOW, local)


def settle(lake: SmallLake, **keys: Any) -> None:
    """Close the days with a row of a later one, and publish what there is."""
    lake.commit({9: 1})
    load(lake.pipeline(**keys))
    publish(lake.pipeline(**keys))


def dated(ids: list[int], number: int = 1) -> dict[str, list[int]]:
    return {f"dt=2026-02-{number:02d}": sorted(ids)}


def test_rebuild_that_a_load_overtakes_loses_no_row(lake: SmallLake) -> None:
    ids = lake.commit({1: 3})
    load(lake.pipeline())

    def load_more() -> None:
        ids.extend(lake.commit({1: 2}))
        load(lake.pipeline(), owner="other")

    rebuild(slow(lake.pipeline(), load_more), 1)
    settle(lake)

    assert lake.ids() == dated(ids)
    assert lake.listed_ids() == dated(ids)


def test_load_that_a_rebuild_overtakes_loses_no_row(lake: SmallLake) -> None:
    ids = lake.commit({1: 3})
    load(lake.pipeline())
    ids += lake.commit({1: 2})

    load(slow(lake.pipeline(), lambda: rebuild(lake.pipeline(), 1)))
    settle(lake)

    assert lake.ids() == dated(ids)
    assert lake.listed_ids() == dated(ids)


@pytest.mark.parametrize("policies", [{}, GO_ON, BEGIN_ANEW], ids=["fail", "go on", "begin anew"])
def test_load_that_another_overtakes_believes_no_loss_of_history(
    lake: SmallLake, policies: dict[str, str]
) -> None:
    keys = {"source": policies}
    ids = lake.commit({1: 3})
    load(lake.pipeline(**keys))
    ids += lake.commit({1: 2})
    checkpoints = []

    def load_more() -> None:
        ids.extend(lake.commit({1: 4}))
        load(lake.pipeline(**keys), owner="other")
        checkpoints.append(lake.pipeline(**keys).ledger.pipeline.find())

    load(slow(lake.pipeline(**keys), load_more))

    after = lake.pipeline(**keys).ledger.pipeline.find()
    assert after is not None
    assert after.checkpoint == checkpoints[0].checkpoint
    settle(lake, **keys)
    assert lake.ids() == dated(ids)
    assert lake.listed_ids() == dated(ids)


def test_first_load_that_another_overtakes_begins_where_that_one_began(lake: SmallLake) -> None:
    keys = {"source": {"start": "latest"}}
    lake.commit({1: 3})

    def begin() -> None:
        lake.commit({1: 1})
        load(lake.pipeline(**keys), owner="other")

    load(slow(lake.pipeline(**keys), begin))
    ids = lake.commit({1: 2})
    load(lake.pipeline(**keys))
    settle(lake, **keys)

    assert lake.ids() == dated(ids)


def test_run_that_finds_a_window_younger_than_its_look_finishes_it(lake: SmallLake) -> None:
    ids = lake.commit({1: 3})
    load(lake.pipeline())

    def take_and_die() -> None:
        ids.extend(lake.commit({1: 2}))
        lake.pipeline().plan(Run("dead", "cli"), NOW)

    load(slow(lake.pipeline(), take_and_die))
    settle(lake)

    assert lake.ids() == dated(ids)


def test_replay_that_a_load_overtakes_reads_its_own_window_only(lake: SmallLake) -> None:
    ids = lake.commit({1: 3})
    load(lake.pipeline())
    narrow = {"source": {"read": {"filter": f"id > {ids[0]}"}}}

    def load_more() -> None:
        ids.extend(lake.commit({1: 2}))
        load(lake.pipeline(**narrow), owner="other")

    pipeline = slow(lake.pipeline(**narrow), load_more)
    pipeline.finish_load(pipeline.replay(1, Run("replay", "replay"), NOW), NOW, local)
    settle(lake, **narrow)

    assert lake.ids() == dated(ids[1:])


def test_interval_that_another_run_took_meanwhile_is_not_taken_twice(lake: SmallLake) -> None:
    ids = lake.commit({1: 3})
    until = known(1)

    load(slow(lake.pipeline(), lambda: load(lake.pipeline(), until=until, owner="other")))
    settle(lake)

    assert lake.ids() == dated(ids)
    assert lake.listed_ids() == dated(ids)


def test_history_that_is_lost_is_refused_after_a_second_look(lake: SmallLake) -> None:
    lake.commit({1: 3})
    load(lake.pipeline())
    read = lake.table.current_snapshot().snapshot_id
    lake.commit({1: 2})
    lake.table.maintenance.expire_snapshots().by_id(read).commit()
    lake.commit({1: 2})
    pipeline = slow(lake.pipeline(), lambda: None)

    with pytest.raises((CursorExpired, HistoryTruncated)):
        load(pipeline)

    timeline: Any = pipeline.source.timeline
    assert timeline.looks == 2


@pytest.mark.on_disk
def test_backfill_that_died_over_history_replays_the_rest_of_its_interval_too(
    lake: SmallLake,
) -> None:
    keys: dict[str, Any] = {"source": {"start": "latest"}, "commit": {"trigger": "process-time"}}
    lake.commit({1: 1})
    lake.commit({1: 1})
    lake.pipeline(**keys).look(Run("looks", "cli"), NOW)
    ids = lake.commit({2: 2})
    load(lake.pipeline(**keys))
    lake.commit({3: 1})
    load(lake.pipeline(**keys))
    narrow = merged(keys, {"source": {"read": {"filter": f"id > {ids[0]}"}}})
    run = Run("backfill", "cli", interval(1, days=3))
    # Dead after its windows were taken, before anything was planned.
    with pytest.raises(Died):
        lake.pipeline(Dying(), **narrow).plan(run, NOW)

    load_windows = lake.pipeline(**narrow).load(run, NOW, local).windows

    assert sorted(load_windows) == [1, 3]
    publish(lake.pipeline(**narrow))
    assert lake.ids()["dt=2026-02-02"] == ids[1:]


def test_idle_watermark_waits_for_what_the_source_has_brought(lake: SmallLake) -> None:
    lake.keys = {"event_time": {"column": "at", "idle_timeout": "2d", "when_idle": "advance"}}
    ids = lake.commit({1: 2})
    load(lake.pipeline(), interval(1), now=known(1.1))
    lake.commits = 2
    ids += lake.commit({2: 1})
    ids += lake.commit({2: 1})
    # After days without runs the intervals are caught up one by one; two of them have nothing.
    for number, at in ((2, 8), (3, 8), (4, 8), (5, 11)):
        load(lake.pipeline(), interval(number), now=known(at))
        publish(lake.pipeline(), now=known(at))

    assert lake.pipeline().ledger.partitions.get(day(2)).revision == 1
    assert lake.ids() == {"dt=2026-02-01": ids[:2], "dt=2026-02-02": ids[2:]}


@pytest.mark.parametrize("cut", ["intervals", "limits"])
def test_idle_watermark_waits_for_what_follows_a_window_without_rows(
    lake: SmallLake, cut: str
) -> None:
    limits = {"limits": {"snapshots": 1}} if cut == "limits" else {}
    lake.keys = {
        "event_time": {"column": "at", "idle_timeout": "2h", "when_idle": "advance"},
        "source": {"read": {"filter": "amount < 50"}, **limits},
    }
    ids = lake.commit({1: 2})
    load(lake.pipeline(), interval(1) if cut == "intervals" else None, now=known(1.1))
    lake.commit({2: 1}, amount=100)
    ids += lake.commit({1: 3})

    # After days without runs, the first of two windows has no row that passes the filter.
    first = load(lake.pipeline(), interval(2) if cut == "intervals" else None, now=known(9))
    publish(lake.pipeline(), now=known(9))
    assert (first.windows, first.summary.rows_read, lake.ids()) == ((2,), 0, {})

    load(lake.pipeline(), interval(3) if cut == "intervals" else None, now=known(9))
    load(lake.pipeline(), now=known(9.1))
    publish(lake.pipeline(), now=known(9.1))

    assert lake.ids() == {"dt=2026-02-01": ids}
    assert lake.pipeline().ledger.partitions.get(day(1)).revision == 1


class Died(BaseException):
    """The process ends here."""


@dataclass(frozen=True)
class Dying(LocalStorage):
    """Ends the process before a plan stands."""

    def write_once(self, path: str, *rest: Any) -> bool:
        if path.endswith("plan.json"):
            raise Died
        return super().write_once(path, *rest)
