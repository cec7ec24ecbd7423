"""A load that fails: who goes on with its window, when, and what its log says meanwhile."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk.exceptions import AirflowSkipException, TaskDeferred
from typer.testing import CliRunner

from airflow_context import TaskInstance, task_context
from airflow_runs import run_dag, states
from small_lake import SmallLake, interval, known, load, publish
from tidegate.cli.app import app
from tidegate.errors import WindowIncomplete, WindowOpen
from tidegate.model.run import Run
from tidegate_airflow.assets import staged_asset
from tidegate_airflow.failures import give_back
from tidegate_airflow.held_windows import planned_windows
from tidegate_airflow.load import announce_window
from tidegate_airflow.operators import MergeRead, PlanSplits
from tidegate_airflow.partition_steps import ProposeRevision
from tidegate_airflow.runs import utc_now
from tidegate_airflow.sensors import ChangesSensor
from tidegate_airflow.triggers import WindowTrigger

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.pipeline import Pipeline

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.timeout(120),
    # Airflow's in-process API is made of packages that warn of each other.
    pytest.mark.filterwarnings("ignore:Using `httpx`:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::starlette.exceptions.StarletteDeprecationWarning"),
]

STEP: dict[str, Any] = {"pipeline": "orders", "poll_seconds": 2.0}


@pytest.fixture
def pipeline(lake: SmallLake) -> Pipeline:
    lake.commit({1: 3, 2: 1})
    return lake.pipeline()


class LoadRun:
    """A run of the load DAG whose tasks are started one by one, as Airflow does after a clear."""

    def __init__(self, run: str, number: int | None = 1) -> None:
        span = interval(number) if number is not None else None
        self.context: Any = task_context(run=run, interval=span)
        self.instance: TaskInstance = self.context["ti"]
        self.owner = f"airflow:orders_load/{run}"

    def plan(self) -> None:
        self._keep("plan_splits", PlanSplits(task_id="plan_splits", **STEP).resume)

    def read(self) -> None:
        operator = MergeRead(task_id="merge_read", plans_from="plan_splits", **STEP)
        self._keep("merge_read", operator.resume)

    def announce(self) -> set[str]:
        """Give the keys of the events."""
        staged = staged_asset("orders")
        planned = planned_windows(self.context, "merge_read", "plan_splits")
        announce_window("orders", planned, staged, self.context)
        keys: set[str] = self.context["outlet_events"][staged].partition_keys
        return keys

    def fail(self) -> None:
        give_back(self.context)

    def _keep(self, task_id: str, call: Callable[[Any], Any]) -> None:
        self.instance.handed[task_id, "return_value"] = call(self.context)


def windows(pipeline: Pipeline) -> list[tuple[str, bool, str | None]]:
    """Give the windows: who took it, whether it is sealed, who holds it."""
    found = pipeline.ledger.windows.all()
    return [(item.window.run, item.sealed, item.owner) for item in found]


def test_load_that_fails_leaves_its_window_to_the_next_run_at_once(
    lake: SmallLake, pipeline: Pipeline, airflow_database: None
) -> None:
    files = list((lake.root / "raw").rglob("*.parquet"))
    for file in files:
        file.rename(file.with_suffix(".away"))

    failed = run_dag("orders_load", logical_date=known(1))
    given_back = windows(pipeline)
    for file in files:
        file.with_suffix(".away").rename(file)
    lake.commit({2: 2})
    lake.commit({3: 1})
    following = run_dag("orders_load", logical_date=known(2))

    assert states(failed)["merge_read"] == "failed"
    assert given_back == [(failed.run_id, False, None)]
    assert set(states(following).values()) == {"success"}
    assert windows(pipeline) == [(failed.run_id, True, None), (following.run_id, True, None)]
    load(pipeline, until=known(5))
    publish(pipeline)
    assert lake.ids() == {"dt=2026-02-01": [1, 2, 3], "dt=2026-02-02": [4, 5, 6]}


def test_command_line_does_not_wait_for_a_run_that_has_failed(
    lake: SmallLake, pipeline: Pipeline
) -> None:
    run = LoadRun("run-1")
    run.plan()
    refused = CliRunner().invoke(app, ["load", "orders"])

    run.fail()
    done = CliRunner().invoke(app, ["load", "orders"])

    assert "WindowOpen" in refused.output
    assert done.exit_code == 0, done.output
    assert windows(pipeline) == [("run-1", True, None)]


def test_partition_of_a_publish_run_that_failed_is_free_at_once(
    lake: SmallLake, pipeline: Pipeline
) -> None:
    lake.commit({2: 1})
    load(pipeline, interval(1, days=2))
    context: Any = task_context(run="run-1", partition="2026-02-01")
    ProposeRevision(task_id="propose", **STEP).resume(context)
    held = [state.owner for state in pipeline.ledger.partitions.all()]

    give_back(context)

    assert held == ["airflow:orders_publish/run-1", None]
    assert [state.owner for state in pipeline.ledger.partitions.all()] == [None, None]
    publish(pipeline)
    assert lake.ids() == {"dt=2026-02-01": [1, 2, 3]}


def test_run_that_fails_gives_back_what_it_holds_itself(pipeline: Pipeline) -> None:
    LoadRun("run-1").plan()

    LoadRun("run-2").fail()

    assert windows(pipeline) == [("run-1", False, "airflow:orders_load/run-1")]


def test_cleared_task_goes_on_with_the_window_that_its_run_took(
    lake: SmallLake, pipeline: Pipeline
) -> None:
    run = LoadRun("run-1")
    run.plan()
    run.fail()

    run.read()
    held = windows(pipeline)
    keys = run.announce()

    # Taken again, so that no other run takes it meanwhile.
    assert held == [("run-1", False, run.owner)]
    assert keys == {"2026-02-01", "2026-02-02"}
    assert windows(pipeline) == [("run-1", True, None)]


def test_cleared_task_finds_its_window_finished_by_a_later_run(
    lake: SmallLake, pipeline: Pipeline
) -> None:
    first, second = LoadRun("run-1"), LoadRun("run-2", 2)
    first.plan()
    first.fail()
    second.plan()
    second.read()
    told = second.announce()
    before = pipeline.ledger.windows.get(1).sealed_at

    first.read()
    with pytest.raises(AirflowSkipException, match="no partition was touched"):
        first.announce()

    assert told == {"2026-02-01", "2026-02-02"}
    assert pipeline.ledger.windows.get(1).sealed_at == before


def test_cleared_run_says_that_another_one_finished_its_window(
    lake: SmallLake, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr("tidegate_airflow.held_windows.keep_reason", said.append)
    first, second = LoadRun("run-1", None), LoadRun("run-2", None)
    first.plan()
    first.fail()
    second.plan()
    second.read()
    second.announce()

    first.read()

    assert said == ["windows [1] were finished by another run, and nothing else came"]


def test_cleared_announce_seals_what_its_run_staged_before_it_lost_the_window(
    lake: SmallLake, pipeline: Pipeline
) -> None:
    first, second = LoadRun("run-1"), LoadRun("run-2", 2)
    first.plan()
    first.read()
    first.fail()
    second.plan()
    second.fail()

    assert first.announce() == {"2026-02-01", "2026-02-02"}
    assert windows(pipeline) == [("run-1", True, None)]


def test_cleared_task_waits_while_a_later_run_works_on_its_window(
    lake: SmallLake, pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = LoadRun("run-1"), LoadRun("scheduled__2026-02-02T00:00:00+00:00", 2)
    first.plan()
    first.fail()
    second.plan()

    with caplog.at_level(logging.INFO), pytest.raises(TaskDeferred) as deferred:
        first.read()

    assert isinstance(deferred.value.trigger, WindowTrigger)
    assert "run scheduled__2026-02-02T00:00:00+00:00 of orders_load" in caplog.text


@pytest.mark.parametrize("task", ["sensor", "plan"])
def test_log_of_a_waiting_run_names_the_run_its_page_and_the_command(
    lake: SmallLake, pipeline: Pipeline, caplog: pytest.LogCaptureFixture, task: str
) -> None:
    LoadRun("scheduled__2026-02-01T00:00:00+00:00").plan()
    waits = LoadRun("run-2", 2)
    sensor = ChangesSensor(task_id="wait_for_changes", **STEP)

    with caplog.at_level(logging.INFO), pytest.raises(TaskDeferred):
        sensor.resume(waits.context) if task == "sensor" else waits.plan()

    assert "window 1 is worked on by run scheduled__2026-02-01T00:00:00+00:00" in caplog.text
    assert "/dags/orders_load/runs/scheduled__2026-02-01T00%3A00%3A00%2B00%3A00;" in caplog.text
    assert "`tidegate load orders --take-over`" in caplog.text


def test_log_of_a_run_that_waits_for_the_command_line_says_so(
    lake: SmallLake, pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    pipeline.plan(Run("by hand", "cli:elsewhere:1:1:0.0"), utc_now())
    sensor = ChangesSensor(task_id="wait_for_changes", **STEP)

    with caplog.at_level(logging.INFO), pytest.raises(TaskDeferred):
        sensor.resume(LoadRun("run-2", 2).context)

    assert "cli:elsewhere:1:1:0.0, outside of Airflow" in caplog.text


@pytest.mark.follows("WindowIncomplete")
@pytest.mark.parametrize("way", ["clear", "command"])
def test_reading_task_that_was_marked_as_done_is_named_and_made_up_for(
    lake: SmallLake, pipeline: Pipeline, way: str
) -> None:
    run = LoadRun("run-1")
    run.plan()
    with pytest.raises(WindowIncomplete, match="`tidegate load orders`: only those are read"):
        run.announce()
    run.fail()

    if way == "clear":
        run.read()
        run.announce()
    else:
        done = CliRunner().invoke(app, ["load", "orders"])
        assert done.exit_code == 0, done.output

    assert windows(pipeline) == [("run-1", True, None)]
    assert {item.rows for item in pipeline.ledger.contributions.of_window(1)} == {3, 1}


def test_reading_task_of_a_replay_that_was_marked_as_done_names_the_replay(
    lake: SmallLake, pipeline: Pipeline
) -> None:
    load(pipeline, interval(1))
    lake.file(source={"read": {"filter": "amount > 0"}})
    run = LoadRun("run-1")
    run.plan()

    with pytest.raises(WindowIncomplete, match="`tidegate replay orders 1`"):
        run.announce()


def test_window_is_never_open_for_two_runs_at_once(pipeline: Pipeline) -> None:
    """What a run gave back and took again is its own as before."""
    run = LoadRun("run-1")
    run.plan()
    run.fail()
    run.read()

    with pytest.raises(WindowOpen):
        load(pipeline, owner="cli:elsewhere:1:1:0.0")
