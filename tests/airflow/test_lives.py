"""Whether the run that holds a window or a partition may go on, asked of Airflow."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowException
from airflow.sdk.execution_time import task_runner

from airflow_context import task_context
from small_lake import NOW, SmallLake, day, interval, load
from tidegate.errors import FenceLost, SourceFileGone, TidegateError, WindowOpen
from tidegate.ledger.holder import Life
from tidegate.model.run import Run
from tidegate.model.wire import pretty
from tidegate.pipeline.state.holders import process_owner
from tidegate.storage import LocalStorage
from tidegate_airflow import operators
from tidegate_airflow.lives import life_in_airflow
from tidegate_airflow.operators import MergeRead, PlanSplits
from tidegate_airflow.runs import read_owner, run_owner, utc_now
from tidegate_airflow.triggers import PartitionTrigger, WindowTrigger, opened

if TYPE_CHECKING:
    from airflow_supervisor import Supervisor
    from tidegate.model.instant import DataInterval
    from tidegate.pipeline import Pipeline

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(120)]

OWNER = "airflow:orders_load/run-0"
ENDED = {"execute": {"claim_timeout": "1ms"}}
"""So that every claim has run out at once, unless somebody lives on without renewing it."""


@pytest.fixture
def pipeline(lake: SmallLake) -> Pipeline:
    lake.keys = ENDED
    lake.commit({1: 3})
    lake.commit({2: 3})
    return lake.pipeline()


def test_owner_names_the_run_that_it_was_made_of() -> None:
    context: Any = task_context(run="scheduled__2026-02-01T00:00:00+00:00/again")

    named = read_owner(run_owner(context))

    assert named == ("orders_load", "scheduled__2026-02-01T00:00:00+00:00/again")
    assert read_owner(process_owner("cli")) is None


@pytest.mark.parametrize(
    ("state", "life"),
    [
        ("running", Life.WAITING),
        ("success", Life.GONE),
        ("failed", Life.GONE),
        # It was cleared, and perhaps waits until the run that asks has ended.
        ("queued", Life.GONE),
        (None, Life.GONE),
    ],
)
def test_run_lives_as_long_as_airflow_calls_it_running(
    airflow: Supervisor, state: str | None, life: Life
) -> None:
    if state is not None:
        airflow.states["orders_load", "run-0"] = state

    assert life_in_airflow(OWNER) is life


def test_run_may_live_while_airflow_does_not_answer(airflow: Supervisor) -> None:
    airflow.silent = True

    assert life_in_airflow(OWNER) is Life.WAITING


def test_run_may_live_where_nobody_can_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(task_runner, "SUPERVISOR_COMMS", raising=False)

    assert life_in_airflow(OWNER) is Life.WAITING


def test_process_is_judged_as_everywhere(airflow: Supervisor) -> None:
    airflow.silent = True

    assert life_in_airflow(process_owner("cli")) is Life.RENEWING


def test_window_trigger_waits_for_a_run_whose_next_task_is_queued(
    airflow: Supervisor, pipeline: Pipeline
) -> None:
    (taken,) = pipeline.plan(Run("run-0", OWNER, interval(1)), NOW)
    other = WindowTrigger("orders", "airflow:orders_load/run-1", taken.sequence, 2.0)
    airflow.states["orders_load", "run-0"] = "running"
    queued = other.has_work(NOW + timedelta(days=3))

    airflow.states["orders_load", "run-0"] = "failed"

    assert (queued, other.has_work(NOW)) == (False, True)
    # A retry or a clear of the run itself asks nobody.
    airflow.states["orders_load", "run-0"] = "running"
    assert WindowTrigger("orders", OWNER, taken.sequence, 2.0).has_work(NOW)


def test_partition_trigger_goes_on_after_a_run_that_was_deleted(
    airflow: Supervisor, pipeline: Pipeline
) -> None:
    load(pipeline, interval(2))
    owner = "airflow:orders_publish/run-0"
    airflow.states["orders_publish", "run-0"] = "running"
    pipeline.propose(day(1), owner, NOW)
    trigger = PartitionTrigger("orders", "airflow:orders_publish/run-1", day(1).key, 2.0)

    while_running = [trigger.has_work(NOW + timedelta(minutes=n)) for n in range(3)]
    del airflow.states["orders_publish", "run-0"]
    once_deleted = [trigger.has_work(NOW + timedelta(minutes=n)) for n in range(3)]

    assert (any(while_running), once_deleted) == (False, [False, True, True])


def test_driver_that_may_not_take_over_gets_the_window_from_its_task(
    airflow: Supervisor, pipeline: Pipeline, lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver cannot ask Airflow; its task would wait for a window that is free."""
    pipeline.plan(Run("run-0", OWNER, interval(1)), NOW)
    airflow.states["orders_load", "run-0"] = "failed"
    submitted: list[bool] = []

    def drive(_operator: PlanSplits, _context: Any, request: Any, _place: str) -> None:
        submitted.append(True)
        lake.pipeline().plan(Run.from_json(request["run"]), utc_now())

    monkeypatch.setattr(PlanSplits, "submit", drive)
    monkeypatch.setattr(operators, "plans_on_spark", lambda *_: True)
    operator = planning()
    context: Any = task_context(run="run-1", interval=interval(2))

    planned = operator.resume(context)

    assert len(submitted) == 2
    assert [item["taken_over"] for item in planned] == [True]
    assert opened("orders").ledger.windows.get(1).owner == "airflow:orders_load/run-1"


def waiting(run: str, interval: DataInterval) -> Any:
    """Return what a task gets that is resumed."""
    return task_context(run=run, interval=interval)


def held_by_another(sequence: int) -> WindowOpen:
    """Return what a driver meets that may not take a window."""
    return WindowOpen(
        pipeline="orders", sequence=sequence, run="run-0", renewed="never", outlook="Wait."
    )


def planning() -> PlanSplits:
    return PlanSplits(task_id="plan_splits", pipeline="orders", poll_seconds=2.0)


def ending_with(
    errors: list[TidegateError | None], monkeypatch: pytest.MonkeyPatch
) -> list[TidegateError | None]:
    """Let drivers end with these errors, one after the other; without one they leave no report."""
    left = list(errors)

    def drive(operator: PlanSplits, _context: Any) -> None:
        report = operator.application_args[operator.application_args.index("--report") + 1]
        error = left.pop(0)
        if error is not None:
            LocalStorage().write_once(report, pretty(error.to_json()))
        msg = "spark-submit ended with 1"
        raise AirflowException(msg)

    connection = Connection(conn_id="spark_default", conn_type="spark", host="local")
    monkeypatch.setattr(operators, "spark_connection", lambda: connection)
    monkeypatch.setattr(operators, "plans_on_spark", lambda *_: True)
    monkeypatch.setattr(SparkSubmitOperator, "execute", drive)
    return left


@pytest.mark.parametrize(
    ("second", "raised"),
    [(SourceFileGone(path="/lake/x.parquet"), SourceFileGone), (None, AirflowException)],
    ids=["told", "not told"],
)
def test_second_driver_of_one_attempt_fails_for_its_own_reason(
    airflow: Supervisor,
    pipeline: Pipeline,
    monkeypatch: pytest.MonkeyPatch,
    second: TidegateError | None,
    raised: type[Exception],
) -> None:
    (taken,) = pipeline.plan(Run("run-0", OWNER, interval(1)), NOW)
    airflow.states["orders_load", "run-0"] = "failed"
    left = ending_with([held_by_another(taken.sequence), second], monkeypatch)

    with pytest.raises(raised):
        planning().resume(waiting(run="run-1", interval=interval(2)))

    assert left == []


def test_window_that_was_dropped_while_a_driver_asked_for_it_is_not_missed(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(pipeline, interval(1))
    left = ending_with([held_by_another(7), SourceFileGone(path="/lake/x.parquet")], monkeypatch)

    with pytest.raises(SourceFileGone):
        planning().resume(waiting(run="run-1", interval=interval(2)))

    assert left == []


def test_task_that_waits_for_a_driver_keeps_its_window_and_ends_the_driver_once_it_is_lost(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.commit({1: 3})
    lake.keys = {"execute": {"claim_timeout": "300ms", "engine": "spark"}}
    pipeline = lake.pipeline()
    planned = pipeline.plan(Run("run-1", "airflow:orders_load/run-1", interval(1)), NOW)
    killed = threading.Event()
    kept: list[bool] = []

    def drive(*_arguments: Any) -> None:
        first = pipeline.ledger.windows.get(1).expires
        while pipeline.ledger.windows.get(1).expires == first:
            killed.wait(0.02)
        kept.append(True)
        pipeline.take_over(1, Run("again", "airflow:orders_load/run-1"), NOW)
        assert killed.wait(30)
        msg = "spark-submit was killed"
        raise RuntimeError(msg)

    monkeypatch.setattr(MergeRead, "submit", drive)
    monkeypatch.setattr(MergeRead, "on_kill", lambda _operator: killed.set())
    operator = MergeRead(
        task_id="merge_read", pipeline="orders", poll_seconds=2.0, plans_from="plan_splits"
    )
    handed = {"plan_splits": [item.to_json() for item in planned]}
    context: Any = task_context(run="run-1", interval=interval(1), handed=handed)

    with pytest.raises(FenceLost):
        operator.execute.__wrapped__(operator, context)

    assert kept == [True]


def test_command_line_beside_airflow_waits_for_every_run(pipeline: Pipeline) -> None:
    pipeline.plan(Run("run-0", OWNER, interval(1)), NOW)

    with pytest.raises(WindowOpen, match="--take-over"):
        load(pipeline, owner=process_owner("cli"))
