from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from airflow_context import task_context
from tidegate.config import PipelineConfig
from tidegate.errors import IntervalInvalid, PartitionPathInvalid, PartitionUnnamed
from tidegate.model.instant import DataInterval
from tidegate_airflow.runs import check_interval, load_run, publish_partition, run_owner

pytestmark = pytest.mark.airflow

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
CONFIG = PipelineConfig.model_validate(
    {
        "name": "orders",
        "source": {"kind": "iceberg", "metadata": "/lake/raw/orders"},
        "event_time": "at",
        "target": {"path": "/lake/orders", "partition_by": {"dt": "day(at)", "region": "region"}},
    }
)


def test_interval_that_ended_just_now_may_be_loaded() -> None:
    check_interval(DataInterval(NOW - HOUR, NOW), NOW, "run")


@pytest.mark.parametrize(
    ("interval", "problem"),
    [
        pytest.param(DataInterval(NOW, NOW), "holds no moment", id="empty"),
        pytest.param(DataInterval(NOW, NOW - HOUR), "holds no moment", id="turned-round"),
        pytest.param(
            DataInterval(NOW - HOUR, NOW + timedelta(microseconds=1)), "not over", id="not-over"
        ),
    ],
)
def test_interval_that_cannot_be_loaded_once_is_refused(
    interval: DataInterval, problem: str
) -> None:
    with pytest.raises(IntervalInvalid, match=problem):
        check_interval(interval, NOW, "run")


def test_run_has_the_interval_of_its_context() -> None:
    interval = DataInterval(NOW - HOUR, NOW)

    run = load_run(task_context(run="run-1", interval=interval), NOW)

    assert (run.id, run.interval, run.end_exclusive) == ("run-1", interval, NOW)
    assert run.owner == "airflow:orders_load/run-1"


def test_run_by_hand_has_no_interval() -> None:
    assert load_run(task_context(), NOW).end_exclusive is None


def test_retry_is_the_same_owner_as_its_run() -> None:
    first, again = task_context(run="run-1"), task_context(run="run-1")
    again["ti"].try_number = 2

    assert run_owner(first) == run_owner(again)
    assert run_owner(first) != run_owner(task_context(run="run-2"))


@pytest.mark.follows("PartitionUnnamed")
@pytest.mark.parametrize("text", ["2026-02-01~eu", "dt=2026-02-01/region=eu"], ids=["key", "path"])
def test_partition_is_that_of_the_event_or_the_parameter(text: str) -> None:
    by_event = task_context(partition=text)
    by_hand = task_context()
    by_hand["params"] = {"partition": text}

    found = {str(publish_partition(context, CONFIG)) for context in (by_event, by_hand)}

    assert found == {"dt=2026-02-01/region=eu"}


def test_run_without_a_partition_says_how_to_name_one() -> None:
    with pytest.raises(PartitionUnnamed, match="its key such as 2026-11-01~value"):
        publish_partition(task_context(), CONFIG)


def test_key_of_another_form_is_refused() -> None:
    with pytest.raises(PartitionPathInvalid, match="such as 2026-11-01~value"):
        publish_partition(task_context(partition="2026-02-01"), CONFIG)
