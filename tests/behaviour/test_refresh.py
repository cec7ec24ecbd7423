"""A partition is published as the source has it now, by one command."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from small_lake import NOW, SmallLake, day, known
from tidegate.cli.app import app
from tidegate.model.run import Run
from tidegate.pipeline.state.holders import process_owner

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

FIRST, SECOND = "dt=2026-02-01", "dt=2026-02-02"


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallLake:
    """A table in whose commits rows may be deleted; the day 9 lets all days before it be over."""
    made = SmallLake(
        tmp_path / "lake",
        keys={"source": {"read": {"mode": "append", "on_non_append": "skip"}}},
    )
    made.file()
    made.found_by_name(monkeypatch)
    return made


def tidegate(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def said(*arguments: str) -> Any:
    return json.loads(tidegate(*arguments, "--json").stdout)


def test_new_rows_come_and_deleted_ones_go(lake: SmallLake) -> None:
    first = lake.commit({1: 3, 2: 2, 9: 1})
    tidegate("load", "orders")
    tidegate("publish", "orders")
    more = lake.commit({1: 2, 2: 1})
    lake.table.delete(f"id == {first[0]}", snapshot_properties={"known-at": known(3).isoformat()})

    refreshed = tidegate("refresh", "orders", FIRST)

    assert refreshed.exit_code == 0
    assert lake.ids() == {FIRST: [*first[1:3], *more[:2]], SECOND: first[3:5]}
    head = lake.table.refresh().current_snapshot()
    checkpoint = lake.pipeline().ledger.pipeline.get().checkpoint
    assert head is not None
    assert checkpoint is not None
    assert checkpoint.id == str(head.snapshot_id)


def test_refresh_tells_all_three_steps(lake: SmallLake) -> None:
    lake.commit({1: 3, 9: 1})
    tidegate("load", "orders")
    lake.commit({1: 1})

    told = said("refresh", "orders", FIRST)

    assert told["load"]["summary"]["rows_kept"] == 1
    assert told["rebuild"]["summary"]["rows_kept"] == 4
    assert [(item["state"], item["rows"]) for item in told["outcomes"]] == [("committed", 4)]


def test_refresh_finishes_the_window_of_a_dead_run(lake: SmallLake) -> None:
    ids = lake.commit({1: 3, 9: 1})
    pipeline = lake.pipeline()
    died = process_owner("cli").replace(f":{os.getpid()}:", ":4194999:")
    pipeline.plan(Run("died", died), NOW)

    tidegate("refresh", "orders", FIRST)

    assert lake.ids() == {FIRST: ids[:3]}


def test_partition_that_is_not_over_is_read_again_and_waits(lake: SmallLake) -> None:
    lake.commit({1: 3, 2: 1})
    tidegate("load", "orders")
    tidegate("publish", "orders")

    refreshed = tidegate("refresh", "orders", SECOND)

    assert refreshed.exit_code == 3
    assert "Next: tidegate explain orders dt=2026-02-02" in refreshed.stdout
    assert lake.pipeline().explain(day(2), NOW).report.rows_pending == 1


def test_nothing_is_refreshed_before_there_is_anything(lake: SmallLake) -> None:
    refreshed = tidegate("refresh", "orders", FIRST)

    assert refreshed.exit_code == 3
    assert "nothing to refresh" in refreshed.stdout


def test_unknown_partition_is_refused_by_name(lake: SmallLake) -> None:
    lake.commit({1: 3, 9: 1})

    refreshed = tidegate("refresh", "orders", "dt=2026-03-01")

    assert refreshed.exit_code == 2
    assert "2026-03-01" in refreshed.stderr


def test_files_of_other_days_are_not_opened(lake: SmallLake) -> None:
    for number in (1, 2, 3, 9):
        lake.commit({number: 2})
    tidegate("load", "orders")
    told = said("refresh", "orders", SECOND)

    plan = lake.pipeline().stored_plan(2)[0]
    assert (plan.totals.files, plan.totals.rows) == (1, 2)
    assert "the event times of the rebuilt partitions ruled out 3 files" in told["rebuild"]["notes"]
