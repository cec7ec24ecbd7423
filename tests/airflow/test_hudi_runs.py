"""DAG runs over a Hudi table whose services compact, cluster, clean and archive between them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from airflow_runs import events_of, run_dag, states, tries
from small_hudi import Command, commands, typed
from small_lake import publish
from tidegate.source.hudi.files import TableFiles
from walked_hudi import WalkedLake

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.timeout(600),
    # As of all whole runs.
    pytest.mark.filterwarnings("ignore:Using `httpx`:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::starlette.exceptions.StarletteDeprecationWarning"),
]
MINUTE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def _database(airflow_database: None) -> None:
    """Every run is stored."""


@pytest.fixture
def lake(tmp_path: Path) -> WalkedLake:
    return WalkedLake(tmp_path, keys={"dag": {"schedule": "* * * * *"}})


@pytest.fixture(autouse=True)
def tidegate(lake: WalkedLake, monkeypatch: pytest.MonkeyPatch) -> Command:
    return typed(lake.root, monkeypatch)


def minute_of(lake: WalkedLake, step: int) -> datetime:
    """The end of the minute in which the last write of a step was done."""
    names = [name.rpartition("/")[2] for name in lake.table.files[step - 1]]
    last = max(name.partition("_")[2][:14] for name in names if name.endswith("commit"))
    done = datetime.strptime(f"{last}+0000", "%Y%m%d%H%M%S%z").astimezone(UTC)
    return done.replace(second=0) + MINUTE


def test_runs_publish_the_engines_rows_while_files_are_cleaned_and_archived(
    lake: WalkedLake,
) -> None:
    for step in (6, 11):
        lake.table.stand_after(step)
        run = run_dag("trips_load", logical_date=None)
        assert set(states(run).values()) == {"success"}

        for key in events_of(run, "trips_staged"):
            published = run_dag("trips_publish", logical_date=None, run_conf={"partition": key})
            assert states(published)["commit"] == "success"

        assert lake.rows == lake.rows_after(step)


def test_backfill_of_an_interval_whose_files_were_cleaned_changes_nothing(lake: WalkedLake) -> None:
    first, last = 5, 11
    assert minute_of(lake, first) < minute_of(lake, last)
    for step in (first, last):
        lake.table.stand_after(step)
        run_dag("trips_load", logical_date=minute_of(lake, step))
        publish(lake.pipeline())

    again = run_dag("trips_load", logical_date=minute_of(lake, first))

    assert states(again)["announce"] == "skipped"
    assert events_of(again, "trips_staged") == {}
    publish(lake.pipeline())
    assert lake.rows == lake.rows_after(last)


@pytest.mark.follows("SourceFileGone")
def test_run_whose_files_were_cleaned_after_its_plan_is_cleared_once_its_window_is_given_up(
    lake: WalkedLake, tidegate: Command, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    lake.take(5)
    lake.table.stand_after(6)
    clean_before_reading(lake, 8, monkeypatch)
    failed = run_dag("trips_load", logical_date=minute_of(lake, 8))
    assert states(failed)["merge_read"] == "failed"
    assert tries(failed)["merge_read"] == 1
    said = "".join(capfd.readouterr())

    abandon = next(it for it in commands(" ".join(said.split())) if "abandon" in it)
    tidegate(f"{abandon} --yes")
    cleared = run_dag("trips_load", logical_date=minute_of(lake, 8))

    assert set(states(cleared).values()) == {"success"}
    publish(lake.pipeline())
    assert lake.rows == lake.rows_after(8)


def clean_before_reading(lake: WalkedLake, step: int, patch: pytest.MonkeyPatch) -> None:
    """Let the table go on when the first log is opened: plans open base files only."""
    open_file = TableFiles.open

    def opening(files: TableFiles, below: str) -> Any:
        if ".log." in below:
            patch.setattr(TableFiles, "open", open_file)
            lake.table.stand_after(step)
        return open_file(files, below)

    patch.setattr(TableFiles, "open", opening)
