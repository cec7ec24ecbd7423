"""A watermark counts for what it is measured in: `event_time` that is changed begins a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from behaviour.test_survival_restored import lose
from small_lake import DAY, NOW, SmallLake, day, load, local, publish
from tidegate.model.run import Run
from tidegate.model.watermark import Reason

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.pipeline import Pipeline

BY_COMMITS: dict[str, Any] = {"event_time": {"watermark_from": "commit_time"}}
BY_COLUMN: dict[str, Any] = {"event_time": {"column": "at"}}


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    """Day 1 is published, by commits of day 21; of day 2 rows have come, and of day 3 will."""
    lake = SmallLake(tmp_path / "lake", keys=BY_COMMITS)
    lake.commits = 20
    lake.commit({1: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    assert sorted(lake.ids()) == ["dt=2026-02-01"]
    lake.keys = BY_COLUMN
    lake.commit({2: 1})
    return lake


def watermark(pipeline: Pipeline) -> object:
    return pipeline.ledger.pipeline.get().watermark


def test_day_that_is_not_over_by_the_new_column_is_not_published(lake: SmallLake) -> None:
    """PC-W04."""
    load(lake.pipeline())
    publish(lake.pipeline())
    assert sorted(lake.ids()) == ["dt=2026-02-01"]

    lake.commit({3: 1})
    load(lake.pipeline())
    publish(lake.pipeline())

    assert sorted(lake.ids()) == ["dt=2026-02-01", "dt=2026-02-02"]


def test_watermark_of_before_does_not_count_until_rows_are_loaded(lake: SmallLake) -> None:
    lake.keys = BY_COMMITS
    load(lake.pipeline())
    lake.keys = BY_COLUMN

    publish(lake.pipeline())

    assert sorted(lake.ids()) == ["dt=2026-02-01"]
    found = lake.pipeline().evaluate(day(2), NOW)
    assert found is not None
    assert found.reason is Reason.WATERMARK_UNDEFINED
    assert "measured in commit times, and does not count since `event_time`" in found.detail
    assert load(lake.pipeline()).watermark is None
    report = lake.pipeline().status(NOW)
    assert report is not None
    assert report.pipeline.watermark is None
    lake.keys = BY_COMMITS
    publish(lake.pipeline())
    assert sorted(lake.ids()) == ["dt=2026-02-01", "dt=2026-02-02"]


def test_restored_ledger_has_the_watermark_of_the_new_column(lake: SmallLake) -> None:
    load(lake.pipeline())
    before = watermark(lake.pipeline())
    lose(lake)

    lake.pipeline().restore_ledger()
    publish(lake.pipeline())

    assert watermark(lake.pipeline()) == before
    assert sorted(lake.ids()) == ["dt=2026-02-01"]


def test_reset_begins_with_the_new_column(lake: SmallLake) -> None:
    planned = lake.pipeline().reset(Run("reset", "cli"), NOW)
    lake.pipeline().finish_load(planned, NOW, local)
    publish(lake.pipeline())

    assert sorted(lake.ids()) == ["dt=2026-02-01"]


def test_window_that_was_planned_before_moves_the_watermark_of_before_only(
    lake: SmallLake,
) -> None:
    lake.keys = BY_COMMITS
    lake.pipeline().plan(Run("run", "cli"), NOW)
    lake.keys = BY_COLUMN

    load(lake.pipeline())
    publish(lake.pipeline())

    assert sorted(lake.ids()) == ["dt=2026-02-01"]


def test_restored_ledger_does_not_take_an_idle_watermark_of_another_column(
    tmp_path: Path,
) -> None:
    """Only the commit plans have it: no window was announced by that measure."""
    lake = SmallLake(tmp_path / "lake", keys=BY_COLUMN)
    lake.commit({1: 1})
    load(lake.pipeline())
    lake.keys = {
        "event_time": {**BY_COMMITS["event_time"], "idle_timeout": "1s", "when_idle": "advance"}
    }
    load(lake.pipeline(), now=NOW + DAY)
    publish(lake.pipeline(), now=NOW + DAY)
    assert sorted(lake.ids()) == ["dt=2026-02-01"]
    lose(lake)
    lake.pipeline().restore_ledger()
    lake.keys = BY_COLUMN
    lake.commit({3: 1})

    load(lake.pipeline())
    publish(lake.pipeline())

    assert sorted(lake.ids()) == ["dt=2026-02-01"]


def test_reconstructed_commit_plan_lifts_no_watermark(tmp_path: Path) -> None:
    """It does not tell what its watermark was measured in."""
    lake = SmallLake(tmp_path / "lake", keys=BY_COLUMN)
    lake.commit({1: 1})
    load(lake.pipeline())
    idle = {"idle_timeout": "1s", "when_idle": "advance"}
    lake.keys = {"event_time": {**BY_COMMITS["event_time"], **idle}}
    load(lake.pipeline(), now=NOW + DAY)
    publish(lake.pipeline(), now=NOW + DAY)
    lake.keys = BY_COLUMN
    lake.commit({3: 1})
    load(lake.pipeline())
    before = watermark(lake.pipeline())
    entry = lake.pipeline().ledger.publications.revisions(day(1))[0]
    (lake.work / entry.commit_plan).unlink()

    lake.pipeline().restore_ledger()

    assert watermark(lake.pipeline()) == before
    publish(lake.pipeline())
    assert sorted(lake.ids()) == ["dt=2026-02-01"]
