from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from airflow.sdk import (
    CronDataIntervalTimetable,
    CronTriggerTimetable,
    PartitionedAssetTimetable,
)

from airflow_pipelines import FLIGHTS, ORDERS, write_pipelines

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow.dag_processing.dagbag import DagBag

pytestmark = pytest.mark.airflow

UPSTREAM = {
    "load": {
        "wait_for_changes": set(),
        "plan_splits": {"wait_for_changes"},
        "merge_read": {"plan_splits"},
        "announce": {"merge_read"},
    },
    "publish": {
        "wait_commit_policy": set(),
        "propose": {"wait_commit_policy"},
        "quality_gate": {"propose"},
        "approve": {"quality_gate"},
        "commit": {"quality_gate", "approve"},
    },
    "reconcile": {"announce_pending": set()},
}


def test_dag_files_parsed_give_three_dags_per_pipeline(bag: DagBag) -> None:
    expected = {f"{name}_{kind}" for name in ("orders", "flights", "whole") for kind in UPSTREAM}

    assert bag.import_errors == {}
    assert set(bag.dags) == expected


@pytest.mark.parametrize("kind", UPSTREAM)
def test_dag_parsed_has_the_tasks_in_their_order(bag: DagBag, kind: str) -> None:
    dag = bag.dags[f"orders_{kind}"]

    assert {task.task_id: task.upstream_task_ids for task in dag.tasks} == UPSTREAM[kind]


def test_every_skip_logs_its_reason() -> None:
    """Airflow shows the reason of a skip nowhere on the task's page."""
    plugins = Path(__file__).parents[2] / "plugins" / "tidegate_airflow"

    raising = [
        path.name for path in plugins.glob("*.py") if "AirflowSkipException(" in path.read_text()
    ]

    assert raising == ["skips.py"]


def test_timetables_are_named_explicitly(bag: DagBag) -> None:
    load, publish = bag.dags["orders_load"].timetable, bag.dags["orders_publish"].timetable

    assert isinstance(load, CronDataIntervalTimetable)  # AF-3.2
    assert str(load.timezone) == "Europe/Berlin"
    assert isinstance(publish, PartitionedAssetTimetable)
    assert publish.asset_condition.name == "orders_staged"  # one producer asset, AF-3.19
    assert isinstance(bag.dags["orders_reconcile"].timetable, CronTriggerTimetable)
    assert not bag.dags["whole_load"].timetable.can_be_scheduled


def test_tasks_that_start_a_driver_stand_in_the_spark_pool(bag: DagBag) -> None:
    pools = {
        (dag.dag_id, task.task_id): task.pool for dag in bag.dags.values() for task in dag.tasks
    }

    in_spark = {task_id for (_, task_id), pool in pools.items() if pool == "spark"}
    assert in_spark == {"plan_splits", "merge_read"}
    assert set(pools.values()) == {"spark", "default_pool"}


def test_every_task_retries_by_the_policy(bag: DagBag) -> None:
    from tidegate_airflow.failures import RETRIES, RETRY_POLICY

    for dag in bag.dags.values():
        for task in dag.tasks:
            assert task.retries == RETRIES, task
            assert task.retry_policy is RETRY_POLICY, task


def test_runs_are_limited_as_their_kind_needs(bag: DagBag) -> None:
    limits = {kind: bag.dags[f"orders_{kind}"].max_active_runs for kind in UPSTREAM}

    assert limits == {"load": 1, "publish": 200, "reconcile": 1}  # AF-3.27
    assert bag.dags["orders_publish"].is_paused_upon_creation is False  # AF-3.28
    assert not any(dag.catchup for dag in bag.dags.values())


def test_dags_are_documented_and_owned(bag: DagBag) -> None:
    for dag in bag.dags.values():
        assert dag.doc_md
        assert "tidegate" in dag.tags
    assert {task.owner for task in bag.dags["orders_load"].tasks} == {"sales"}
    assert "shop" in bag.dags["orders_publish"].tags


def test_approval_waits_as_long_as_the_pipeline_says(bag: DagBag) -> None:
    approve = bag.dags["orders_publish"].get_task("approve")

    assert approve.response_timeout.total_seconds() == 3 * 3600
    assert approve.defaults == ["Reject"]
    assert approve.ignore_downstream_trigger_rules  # AF-3.11
    assert (
        bag.dags["orders_publish"].get_task("commit").trigger_rule == "none_failed_min_one_success"
    )
    assert bag.dags["orders_load"].get_task("announce").trigger_rule == "none_failed"  # AF-3.4


def test_broken_file_leaves_the_other_dags_and_is_named(
    tmp_path: Path, bag_of: Callable[[Path], DagBag]
) -> None:
    broken = FLIGHTS.replace("kind: iceberg", "kind: icebreg")

    bag = bag_of(write_pipelines(tmp_path, flights=broken, orders=ORDERS))

    assert set(bag.dags) == {f"orders_{kind}" for kind in UPSTREAM}
    # Airflow takes every DAG of a file with an import error out of service.
    (place, message), *others = bag.import_errors.items()
    assert not others
    assert place.endswith("tidegate_pipeline_files.py")
    assert f"{tmp_path / 'flights.yaml'}:5: `source" in message
    assert "icebreg" in message


def test_second_file_with_a_name_is_named_and_the_first_goes_on(
    tmp_path: Path, bag_of: Callable[[Path], DagBag]
) -> None:
    late = ORDERS.replace("owner: sales", "owner: nobody")
    assert late != ORDERS

    bag = bag_of(write_pipelines(tmp_path, a=ORDERS, b=late))

    (message,) = bag.import_errors.values()
    assert f"{tmp_path / 'b.yaml'}: the name 'orders' is taken by {tmp_path / 'a.yaml'}" in message
    assert {task.owner for task in bag.dags["orders_load"].tasks} == {"sales"}


@pytest.mark.parametrize("copy", [ORDERS, "name: orders\ntarget: ["], ids=["a copy", "no YAML"])
def test_file_that_says_the_name_of_another_does_not_stop_its_tasks(
    tmp_path: Path, bag_of: Callable[[Path], DagBag], monkeypatch: pytest.MonkeyPatch, copy: str
) -> None:
    folder = write_pipelines(tmp_path, orders=ORDERS, orders_copy=copy)
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "orders_load")

    bag = bag_of(folder)

    assert set(bag.dags) == {f"orders_{kind}" for kind in UPSTREAM}


def test_task_process_builds_only_its_own_pipeline(
    pipelines: Path, bag_of: Callable[[Path], DagBag], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "flights_load")

    bag = bag_of(pipelines)

    assert set(bag.dags) == {f"flights_{kind}" for kind in UPSTREAM}


def test_parsing_loads_nothing_that_reads_data(pipelines: Path) -> None:
    script = """
import sys
from airflow.dag_processing.dagbag import DagBag
bag = DagBag()
assert not bag.import_errors and len(bag.dags) == 9, bag.import_errors
heavy = ["pyspark", "pyarrow", "pandas", "polars", "great_expectations", "pyiceberg"]
ours = ["tidegate.pipeline", "tidegate.ledger", "tidegate.source", "tidegate.storage"]
print("loaded:", *(name for name in heavy + ours if name in sys.modules))
import statistics
print("mean:", statistics.mean([1, 2, 3]))
"""
    environment = {**os.environ, "TIDEGATE_PIPELINES": str(pipelines)}

    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert "loaded:\n" in done.stdout
    assert "mean: 2" in done.stdout
