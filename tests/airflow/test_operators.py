"""Plan and merge-read: engine, connection, waiting for a window, errors across spark-submit."""

from __future__ import annotations

import gc
import json
import sys
import warnings
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowSkipException, TaskDeferred

from airflow_context import task_context
from small_lake import SmallLake, interval
from tidegate.config import PipelineConfig
from tidegate.errors import EnvironmentIncomplete, SourceFileGone
from tidegate.model.run import PlannedWindow, Run
from tidegate.storage import S3Options
from tidegate_airflow import operators
from tidegate_airflow.operators import MergeRead, PlanSplits, plans_on_spark
from tidegate_airflow.runs import utc_now
from tidegate_airflow.spark_environment import driver_environment, spark_connection
from tidegate_airflow.triggers import WindowTrigger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidegate.pipeline import Pipeline

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(180)]

OTHER = Run("run-0", "airflow:orders_load/run-0", interval(1))


def plan(run: str = "run-1") -> list[dict[str, Any]]:
    operator = PlanSplits(task_id="plan_splits", pipeline="orders", poll_seconds=2.0)
    found: list[dict[str, Any]] = operator.resume(task_context(run=run, interval=interval(1)))
    return found


def merge(planned: list[dict[str, Any]]) -> None:
    operator = MergeRead(
        task_id="merge_read", pipeline="orders", poll_seconds=2.0, plans_from="plan_splits"
    )
    operator.execute.__wrapped__(  # as the task runner calls it
        operator, task_context(interval=interval(1), handed={"plan_splits": planned})
    )


def pending(pipeline: Pipeline, planned: list[dict[str, Any]]) -> int:
    uri = PlannedWindow.from_json(planned[0]).uri
    return len(list(pipeline.storage.list_files(f"{uri}/messages")))


def test_plan_hands_over_names_only(lake: SmallLake) -> None:
    lake.commit({1: 3, 2: 3})
    lake.pipeline()

    planned = plan()

    assert len(planned) == 1
    assert len(json.dumps(planned)) < 1024  # AF-10.7


def test_plan_waits_for_the_run_that_holds_the_window(lake: SmallLake) -> None:
    lake.commit({1: 3})
    pipeline = lake.pipeline()
    (taken,) = pipeline.plan(OTHER, utc_now())

    with pytest.raises(TaskDeferred) as deferred:
        plan()

    trigger = deferred.value.trigger
    assert isinstance(trigger, WindowTrigger)
    assert trigger.sequence == taken.sequence


def test_plan_skips_when_another_run_took_everything(
    lake: SmallLake, caplog: pytest.LogCaptureFixture
) -> None:
    lake.pipeline()

    with caplog.at_level("INFO"), pytest.raises(AirflowSkipException) as skip:
        plan()

    assert f"Skipped: {skip.value}" in caplog.messages


def test_small_window_is_staged_in_this_process(lake: SmallLake) -> None:
    lake.commit({1: 3})
    pipeline = lake.pipeline()
    planned = plan()

    merge(planned)

    assert pipeline.engine_for([PlannedWindow.from_json(item) for item in planned]) == "local"
    assert pending(pipeline, planned) == 1


def test_window_that_is_staged_starts_nothing(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.commit({1: 3})
    lake.pipeline(execute={"engine": "spark"})
    monkeypatch.setattr(MergeRead, "submit", lambda *_: pytest.fail("a driver was started"))
    planned = [item | {"pending": 0} for item in plan()]

    merge(planned)


def test_planning_moves_to_a_driver_above_a_size(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.commit({1: 3})
    small, large = lake.pipeline(), lake.pipeline(execute={"engine": "spark"})
    large.adopt(utc_now())
    run = Run("run-1", "me", interval(1))
    assert not plans_on_spark(large, run, utc_now())

    monkeypatch.setattr(operators, "PLAN_ON_SPARK_FILES", 1)

    assert plans_on_spark(large, run, utc_now())
    assert not plans_on_spark(small, run, utc_now())


def test_missing_connection_names_the_variable_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT")

    with pytest.raises(EnvironmentIncomplete, match="AIRFLOW_CONN_SPARK_DEFAULT="):
        spark_connection()


def pipeline_with(section: dict[str, str]) -> PipelineConfig:
    """Give a pipeline whose store is reached as a section says."""
    source = {"kind": "files", "path": "/in"}
    return PipelineConfig.model_validate(
        {"name": "orders", "source": source, "target": {"path": "s3://lake/a"}, "s3": section}
    )


def test_driver_gets_this_python_this_package_and_its_submitter() -> None:
    connection = Connection(conn_id="spark", conn_type="spark", host="local[2]")
    found = driver_environment(connection, pipeline_with({}))

    assert found is not None
    assert found["PYSPARK_PYTHON"] == sys.executable
    assert "include" in found["PYTHONPATH"]
    assert found["TIDEGATE_SUBMITTED_BY"].startswith("task:")


def test_driver_outside_airflow_finds_the_connection_of_its_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = json.dumps({"conn_type": "aws", "login": "key", "password": "secret"})
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", text)
    connection = Connection(conn_id="spark", conn_type="spark", host="local[2]")

    found = driver_environment(connection, pipeline_with({"connection": "lake"}))

    assert found is not None
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", found["AIRFLOW_CONN_LAKE"])
    assert S3Options(connection="lake").resolved().secret_key == "secret"


def test_driver_of_a_standalone_cluster_gets_no_variables() -> None:
    """Spark refuses them there (AF-5.3)."""
    connection = Connection(
        conn_id="spark", conn_type="spark", host="spark://a:7077", extra='{"deploy-mode":"cluster"}'
    )

    assert driver_environment(connection, pipeline_with({})) is None


@pytest.fixture
def _provider_leaves_pipes() -> Iterator[None]:
    """The provider's hook never closes the pipe that it reads spark-submit's log from."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield
        gc.collect()


@pytest.mark.spark
@pytest.mark.usefixtures("_provider_leaves_pipes")
def test_window_is_staged_by_a_submitted_driver(lake: SmallLake) -> None:
    lake.commit({1: 3})
    pipeline = lake.pipeline(execute={"engine": "spark"})
    planned = plan()

    merge(planned)

    assert pending(pipeline, planned) == 1


@pytest.mark.spark
@pytest.mark.usefixtures("_provider_leaves_pipes")
def test_error_of_a_submitted_driver_is_raised_as_itself(lake: SmallLake) -> None:
    lake.commit({1: 3})
    lake.pipeline(execute={"engine": "spark"})
    planned = plan()
    (file,) = (lake.root / "raw").rglob("*.parquet")
    file.unlink()

    with pytest.raises(SourceFileGone) as gone:
        merge(planned)

    assert gone.value.path.endswith(file.name)  # AF-4.16
