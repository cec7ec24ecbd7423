"""A window is taken from a run that is gone for good, and the next run goes on with it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from small_lake import NOW, SmallLake, later, load, local, publish
from tidegate.cli.app import app
from tidegate.errors import FenceLost, WindowNotFound, WindowOpen
from tidegate.ledger.holder import Life
from tidegate.model.run import PlannedWindow, Run
from tidegate.pipeline.state.holders import life_by_time

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.pipeline import Pipeline

SOON = timedelta(minutes=10)
OWNER = "airflow:orders_load:scheduled"
FIRST = "dt=2026-02-01"


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    lake = SmallLake(tmp_path / "lake", keys={"commit": {"trigger": "process-time"}})
    lake.commit({1: 2})
    return lake


def plan(lake: SmallLake) -> PlannedWindow:
    (planned,) = lake.pipeline().plan(Run("scheduled", OWNER), NOW)
    return planned


def by_time(pipeline: Pipeline, by: timedelta) -> Pipeline:
    """Give the pipeline to a person who says that no run waits."""
    return later(replace(pipeline, life_of=life_by_time), by)


def test_window_of_a_run_that_waits_is_released_and_finished_by_the_next(lake: SmallLake) -> None:
    planned = plan(lake)
    with local("") as executor:
        lake.pipeline().stage(planned, executor)
    with pytest.raises(WindowOpen, match=OWNER):
        load(later(lake.pipeline(), SOON))

    by_time(lake.pipeline(), SOON).release(1, "cli", NOW)

    (window,) = lake.pipeline().ledger.windows.all()
    assert (window.owner, window.sealed) == (None, False)
    with pytest.raises(FenceLost):
        lake.pipeline().announce([planned], NOW)
    assert load(lake.pipeline()).windows == (1,)
    publish(lake.pipeline())
    assert lake.ids() == lake.listed_ids() == {FIRST: [1, 2]}


def test_window_of_a_run_that_renews_is_kept(lake: SmallLake) -> None:
    planned = plan(lake)

    with pytest.raises(WindowOpen, match=OWNER):
        by_time(lake.pipeline(), timedelta(0)).release(1, "cli", NOW)

    lake.pipeline().finish_load([planned], NOW, local)
    publish(lake.pipeline())
    assert lake.ids() == {FIRST: [1, 2]}


def test_window_that_is_replayed_is_released_and_stays_announced(lake: SmallLake) -> None:
    load(lake.pipeline())
    lake.pipeline().replay(1, Run("again", OWNER), NOW)

    by_time(lake.pipeline(), SOON).release(1, "cli", NOW)

    (window,) = lake.pipeline().ledger.windows.all()
    assert (window.owner, window.sealed) == (None, True)
    with pytest.raises(WindowNotFound):
        by_time(lake.pipeline(), SOON).release(2, "cli", NOW)


def test_command_asks_or_is_told_yes(lake: SmallLake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.found_by_name(monkeypatch)
    planned = plan(lake)
    monkeypatch.setattr("tidegate.pipeline.state.holders.life_by_time", lambda _owner: Life.GONE)
    line = ["release", "orders"]
    assert CliRunner().invoke(app, line).exit_code == 2

    said = CliRunner().invoke(app, [*line, "--yes"])

    assert said.exit_code == 0, said.output
    assert f"Window {planned.sequence} is released from {OWNER}." in said.output
    assert "Next: tidegate load orders" in said.output
    assert CliRunner().invoke(app, line).exit_code == 3
    assert load(lake.pipeline()).windows == (1,)


@pytest.mark.parametrize("command", ["release", "abandon"])
def test_command_that_finds_no_window_asks_first_whether_the_ledger_would_know(
    lake: SmallLake, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.found_by_name(monkeypatch)
    load(lake.pipeline())
    older = (lake.root / "ledger.db").read_bytes()
    lake.commit({2: 1})
    load(lake.pipeline())
    (lake.root / "ledger.db").write_bytes(older)

    behind = CliRunner().invoke(app, [command, "orders"])

    assert (behind.exit_code, behind.output.split(":")[0]) == (1, "LedgerBehind")
    (lake.root / "ledger.db").unlink()
    lost = CliRunner().invoke(app, [command, "orders", "1"])
    assert (lost.exit_code, lost.output.split(":")[0]) == (1, "LedgerLost")
