"""Whole runs of the DAGs, in process: real tasks, real ledger, real table, no scheduler."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from airflow_runs import events_of, run_dag, states, tries
from small_lake import NOW, SmallLake, interval, known, load, publish
from tidegate.model.run import Run

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.timeout(120),
    # Airflow's in-process API is made of packages that warn of each other.
    pytest.mark.filterwarnings("ignore:Using `httpx`:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::starlette.exceptions.StarletteDeprecationWarning"),
]


@pytest.fixture(autouse=True)
def _database(airflow_database: None) -> None:
    """Every run is stored."""


def load_interval(number: int) -> datetime:
    """Give the logical date whose data interval is the day with this number (AF-2.13)."""
    return known(number)


def test_load_run_stages_its_window_and_announces_what_it_touched(lake: SmallLake) -> None:
    lake.commit({1: 3, 2: 1})
    pipeline = lake.pipeline()

    run = run_dag("orders_load", logical_date=load_interval(1))

    assert set(states(run).values()) == {"success"}
    (window,) = pipeline.ledger.windows.all()
    assert window.sealed
    assert window.window.run == run.run_id
    events = events_of(run, "orders_staged")
    assert set(events) == {"2026-02-01", "2026-02-02"}
    assert events["2026-02-01"] == {"pipeline": "orders", "run": run.run_id, "windows": [1]}


def test_load_run_without_commits_skips_everything_and_starts_nothing(lake: SmallLake) -> None:
    lake.pipeline()

    run = run_dag("orders_load", logical_date=load_interval(1))

    assert set(states(run).values()) == {"skipped"}
    assert run.state == "success"
    assert events_of(run, "orders_staged") == {}


def test_load_run_done_again_changes_nothing_and_announces_nothing(lake: SmallLake) -> None:
    lake.commit({1: 3})
    lake.commit({2: 3})
    pipeline = lake.pipeline()
    run_dag("orders_load", logical_date=load_interval(1))
    run_dag("orders_load", logical_date=load_interval(2))
    publish(pipeline)
    before = lake.stamps()

    again = run_dag("orders_load", logical_date=load_interval(1))

    assert states(again) == {
        "wait_for_changes": "success",
        "plan_splits": "success",
        "merge_read": "success",
        "announce": "skipped",
    }
    assert events_of(again, "orders_staged") == {}
    publish(pipeline)
    assert lake.stamps() == before


def test_load_run_takes_over_from_a_run_that_airflow_knows_no_more(lake: SmallLake) -> None:
    """Asked as every task asks: through its supervisor and the execution API."""
    lake.keys = {"execute": {"claim_timeout": "100ms"}}
    lake.commit({1: 2})
    pipeline = lake.pipeline()
    pipeline.plan(Run("deleted", "airflow:orders_load/deleted", interval(1)), NOW)
    lake.commit({2: 2})

    run = run_dag("orders_load", logical_date=load_interval(2))

    assert set(states(run).values()) == {"success"}
    windows = pipeline.ledger.windows.all()
    assert [(item.sealed, item.window.run) for item in windows] == [
        (True, "deleted"),
        (True, run.run_id),
    ]
    assert set(events_of(run, "orders_staged")) == {"2026-02-01", "2026-02-02"}


def test_load_run_without_an_interval_takes_everything(lake: SmallLake) -> None:
    lake.commit({1: 2})
    lake.commit({2: 2})
    pipeline = lake.pipeline()

    run = run_dag("orders_load", logical_date=None)

    assert set(states(run).values()) == {"success"}
    (window,) = pipeline.ledger.windows.all()
    assert window.window.interval is None
    assert set(events_of(run, "orders_staged")) == {"2026-02-01", "2026-02-02"}


@pytest.mark.follows("IntervalInvalid")
def test_load_run_of_an_interval_that_is_not_over_fails_at_once(
    lake: SmallLake, capfd: pytest.CaptureFixture[str]
) -> None:
    lake.commit({1: 2})
    lake.pipeline()
    future = datetime.now(UTC) + timedelta(days=3)

    run = run_dag("orders_load", logical_date=future)

    assert states(run)["wait_for_changes"] == "failed"
    assert tries(run)["wait_for_changes"] == 1
    assert states(run)["announce"] == "upstream_failed"
    said = "".join(capfd.readouterr())
    assert "IntervalInvalid: " in said
    # What the message says to do.
    assert run_dag("orders_load", logical_date=None).state == "success"


def test_terminal_error_fails_the_task_at_its_first_try(
    lake: SmallLake, capfd: pytest.CaptureFixture[str]
) -> None:
    lake.commit({1: 3})
    lake.pipeline()
    for file in (lake.root / "raw").rglob("*.parquet"):
        file.unlink()

    run = run_dag("orders_load", logical_date=load_interval(1))

    assert states(run)["merge_read"] == "failed"
    assert tries(run)["merge_read"] == 1
    assert run.state == "failed"
    said = "".join(capfd.readouterr())
    assert "SourceFileGone: " in said


def test_publish_run_commits_its_partition_and_tells_its_consumers(lake: SmallLake) -> None:
    ids = lake.commit({1: 3})
    lake.commit({2: 3})
    pipeline = lake.pipeline()
    load(pipeline, until=known(5))

    run = run_dag("orders_publish", logical_date=None, run_conf={"partition": "2026-02-01"})

    assert states(run) == {
        "wait_commit_policy": "success",
        "propose": "success",
        "quality_gate": "success",
        "approve": "skipped",
        "commit": "success",
    }
    assert lake.ids() == {"dt=2026-02-01": ids}
    (event,) = events_of(run, "orders_published").items()
    assert event[0] == "2026-02-01"
    assert event[1]["revision"] == 1
    assert event[1]["rows"] == 3
    assert event[1]["windows"] == [1]


def test_publish_run_of_a_published_partition_skips(lake: SmallLake) -> None:
    lake.commit({1: 3})
    lake.commit({2: 3})
    pipeline = lake.pipeline()
    load(pipeline, until=known(5))
    publish(pipeline)

    run = run_dag("orders_publish", logical_date=None, run_conf={"partition": "dt=2026-02-01"})

    assert set(states(run).values()) == {"skipped"}
    assert run.state == "success"
    assert events_of(run, "orders_published") == {}


def test_publish_run_without_a_partition_fails_at_once(
    lake: SmallLake, capfd: pytest.CaptureFixture[str]
) -> None:
    lake.pipeline().adopt(NOW)

    run = run_dag("orders_publish", logical_date=None)

    assert states(run)["wait_commit_policy"] == "failed"
    assert tries(run)["wait_commit_policy"] == 1
    said = "".join(capfd.readouterr())
    assert "PartitionUnnamed: " in said


def test_reconcile_run_announces_what_is_pending_again(lake: SmallLake) -> None:
    lake.commit({1: 3})
    lake.commit({2: 3})
    load(lake.pipeline(), until=known(5))

    run = run_dag("orders_reconcile", logical_date=None)

    assert states(run) == {"announce_pending": "success"}
    assert set(events_of(run, "orders_staged")) == {"2026-02-01", "2026-02-02"}


def test_reconcile_run_with_nothing_pending_skips(lake: SmallLake) -> None:
    lake.pipeline().adopt(NOW)

    run = run_dag("orders_reconcile", logical_date=None)

    assert states(run) == {"announce_pending": "skipped"}
