"""One run waits for a partition, however many were started for it, and reconcile knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk.exceptions import AirflowSkipException, TaskDeferred

from airflow_context import task_context
from airflow_runs import events_of, run_dag, states
from small_lake import NOW, SmallLake, day, interval, load, publish
from tidegate_airflow.assets import staged_asset
from tidegate_airflow.reconcile import announce_again
from tidegate_airflow.sensors import PartitionCommitSensor

if TYPE_CHECKING:
    from airflow_supervisor import Supervisor
    from tidegate.pipeline import Pipeline

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.timeout(120),
    # Airflow's in-process API is made of packages that warn of each other.
    pytest.mark.filterwarnings("ignore:Using `httpx`:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::starlette.exceptions.StarletteDeprecationWarning"),
]

PUBLISH = "orders_publish"


@pytest.fixture
def pipeline(lake: SmallLake) -> Pipeline:
    """Two days are pending, neither is over."""
    lake.commit({1: 3, 2: 1})
    lake.keys = {"event_time": {"column": "at", "lateness": "40d"}}
    pipeline = lake.pipeline()
    load(pipeline, interval(1))
    return pipeline


def look(run: str, key: str = "2026-02-01") -> None:
    """Do what the first task of a publish run does."""
    sensor = PartitionCommitSensor(
        task_id="wait_commit_policy", pipeline="orders", poll_seconds=2.0, timeout=60
    )
    sensor.resume(task_context(run=run, partition=key))


def wait(airflow: Supervisor, run: str, key: str = "2026-02-01") -> None:
    airflow.states[PUBLISH, run] = "running"
    with pytest.raises(TaskDeferred):
        look(run, key)


def announced() -> set[str]:
    """Do what reconcile does, and give the keys of its events."""
    context: Any = task_context(run="hourly")
    staged = staged_asset("orders")
    announce_again("orders", staged, context)
    keys: set[str] = context["outlet_events"][staged].partition_keys
    return keys


def test_reconcile_announces_only_what_no_run_waits_for(
    airflow: Supervisor, pipeline: Pipeline
) -> None:
    wait(airflow, "run-1")

    assert announced() == {"2026-02-02"}


def test_reconcile_announces_nothing_however_often_once_every_partition_has_its_run(
    airflow: Supervisor, pipeline: Pipeline
) -> None:
    wait(airflow, "run-1")
    wait(airflow, "run-2", "2026-02-02")

    for _ in range(4):
        with pytest.raises(AirflowSkipException, match="runs wait for all that is pending"):
            announced()


@pytest.mark.parametrize("ended", ["failed", "success", None])
def test_reconcile_announces_what_a_run_waited_for_that_has_ended(
    airflow: Supervisor, pipeline: Pipeline, ended: str | None
) -> None:
    wait(airflow, "run-1")
    wait(airflow, "run-2", "2026-02-02")
    if ended is None:
        del airflow.states[PUBLISH, "run-1"]
    else:
        airflow.states[PUBLISH, "run-1"] = ended

    assert announced() == {"2026-02-01"}


def test_reconcile_does_not_announce_what_a_cleared_run_will_look_at(
    airflow: Supervisor, pipeline: Pipeline
) -> None:
    wait(airflow, "run-1")
    airflow.states[PUBLISH, "run-1"] = "queued"

    assert announced() == {"2026-02-02"}


def test_reconcile_keeps_silent_about_waiting_runs_while_airflow_does_not_answer(
    airflow: Supervisor, pipeline: Pipeline
) -> None:
    wait(airflow, "run-1")
    airflow.silent = True

    assert announced() == {"2026-02-02"}


@pytest.mark.parametrize("state", ["null", "queued", "running"])
def test_reconcile_leaves_it_to_runs_that_have_not_looked_yet(
    airflow: Supervisor, pipeline: Pipeline, state: str
) -> None:
    airflow.tasks[PUBLISH, "wait_commit_policy"] = ["deferred", "success", state]

    with pytest.raises(AirflowSkipException, match=r"^1 run of orders_publish did not look yet"):
        announced()


def test_second_run_of_a_partition_leaves_the_waiting_to_the_first(
    airflow: Supervisor, pipeline: Pipeline, lake: SmallLake
) -> None:
    wait(airflow, "run-1")
    lake.commit({1: 2})
    load(pipeline, interval(2))

    with pytest.raises(AirflowSkipException, match=r"run run-1 of orders_publish, http.* waits"):
        look("run-2")

    # The first one is not its own rival.
    wait(airflow, "run-1")


def test_second_run_of_a_partition_waits_once_the_first_has_ended(
    airflow: Supervisor, pipeline: Pipeline
) -> None:
    wait(airflow, "run-1")
    airflow.states[PUBLISH, "run-1"] = "failed"

    wait(airflow, "run-2")

    assert announced() == {"2026-02-02"}


def test_looks_of_others_do_not_hide_the_run_that_waits(
    airflow: Supervisor, pipeline: Pipeline
) -> None:
    wait(airflow, "run-1")
    pipeline.status(NOW)
    pipeline.evaluate(day(1), NOW)
    publish(pipeline)

    found = pipeline.ledger.partitions.get(day(1)).why

    assert found is not None
    assert found.waiting == "airflow:orders_publish/run-1"


def test_run_that_waited_for_a_published_partition_keeps_nobody_from_waiting_again(
    airflow: Supervisor, pipeline: Pipeline, lake: SmallLake
) -> None:
    wait(airflow, "run-1")
    lake.keys = {}
    lake.commit({3: 1})
    soon = lake.pipeline()
    load(soon, interval(2))
    publish(soon)
    lake.keys = {"event_time": {"column": "at", "lateness": "40d"}, "commit": {"delay": "900d"}}
    lake.commit({1: 1})
    load(lake.pipeline(), interval(3))

    wait(airflow, "run-2")


def test_reconcile_run_asks_airflow_itself(
    lake: SmallLake, pipeline: Pipeline, airflow_database: None
) -> None:
    """Asked as every task asks: through its supervisor and the execution API."""
    pipeline.evaluate(day(1), NOW, waiting="airflow:orders_publish/deleted")

    run = run_dag("orders_reconcile", logical_date=None)

    assert states(run) == {"announce_pending": "success"}
    assert set(events_of(run, "orders_staged")) == {"2026-02-01", "2026-02-02"}
