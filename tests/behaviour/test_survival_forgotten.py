"""What no file tells and the ledger in use knows: a restoration does not forget it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from behaviour.test_survival_restored import lose
from small_lake import NOW, SmallLake, load, publish
from tidegate.errors import PipelineChanged
from tidegate.model.run import Run

if TYPE_CHECKING:
    from pathlib import Path

FIRST = "dt=2026-02-01"
IDLE = {"event_time": {"column": "at", "idle_timeout": "2h", "when_idle": "advance"}}
LATER = NOW + timedelta(days=2)


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake")


@pytest.mark.parametrize("begun", [False, True], ids=["nothing taken", "window open"])
@pytest.mark.parametrize("start", ["latest", "after", "earliest", "full"])
def test_start_of_the_first_window_is_kept_before_it_is_announced(
    lake: SmallLake, start: str, begun: bool
) -> None:
    before = lake.commit({1: 1, 2: 1})[:1]
    head = str(lake.table.refresh().current_snapshot().snapshot_id)
    lake.keys = {"source": {"start": {"after": head} if start == "after" else start}}
    pipeline = lake.pipeline()
    if start in {"earliest", "full"}:
        pipeline.plan(Run("dies", "cli"), NOW)
    else:
        load(pipeline)
    state = pipeline.ledger.pipeline.get()
    assert state.started
    ids = lake.commit({1: 2, 2: 1, 3: 1})[:2]
    if begun:
        lake.pipeline().plan(Run("dies", "cli"), NOW)

    lake.pipeline().restore_ledger()

    restored = lake.pipeline().ledger.pipeline.get()
    assert (restored.started, restored.first_start) == (True, state.first_start)
    assert (restored.checkpoint, restored.source_identity) == (
        state.first_start,
        state.source_identity,
    )
    load(lake.pipeline())
    publish(lake.pipeline())
    expected = ids if start in {"latest", "after"} else before + ids
    assert lake.ids()[FIRST] == expected


def test_changed_source_is_refused_by_a_restoration_once_its_start_is_fixed(
    lake: SmallLake,
) -> None:
    lake.keys = {"source": {"start": "latest"}}
    lake.commit({1: 1})
    load(lake.pipeline())
    state = lake.pipeline().ledger.pipeline.get()
    drop = lake.root / "drop"
    drop.mkdir()
    lake.keys = {}
    lake.source = {"kind": "files", "path": str(drop)}

    with pytest.raises(PipelineChanged, match="source"):
        lake.pipeline().restore_ledger()

    assert lake.pipeline().ledger.pipeline.get() == state


def idled(lake: SmallLake) -> Any:
    """Let the source be idle until the watermark passes its last day; the watermark."""
    lake.keys = IDLE
    lake.commit({1: 1, 2: 1})
    load(lake.pipeline())
    load(lake.pipeline(), now=LATER)
    watermark = lake.pipeline().ledger.pipeline.get().watermark
    assert watermark == LATER - timedelta(hours=2)
    return watermark


def test_watermark_of_an_idle_source_does_not_go_back_in_a_ledger_in_use(lake: SmallLake) -> None:
    watermark = idled(lake)
    before = lake.pipeline().ledger.pipeline.get()

    lake.pipeline().restore_ledger()

    restored = lake.pipeline().ledger.pipeline.get()
    assert restored.watermark == watermark
    assert restored.watermark_step == before.watermark_step


def test_watermark_of_a_lost_ledger_does_not_go_back_behind_its_commits(lake: SmallLake) -> None:
    watermark = idled(lake)
    before = lake.pipeline().ledger.pipeline.get().watermark_step
    publish(lake.pipeline(), now=LATER)
    lose(lake)

    lake.pipeline().restore_ledger()

    restored = lake.pipeline().ledger.pipeline.get()
    step = restored.watermark_step
    assert before is not None
    assert step is not None
    assert (restored.watermark, step.value) == (watermark, watermark)
    assert (step.previous, step.last_data_at, step.idle) == (
        before.previous,
        before.last_data_at,
        True,
    )
    lake.commit({2: 1})
    load(lake.pipeline(), now=LATER)
    assert lake.pipeline().ledger.pipeline.get().watermark == watermark
