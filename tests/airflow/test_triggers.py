from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from airflow._shared.module_loading import import_string
from airflow.sdk.exceptions import AirflowSkipException, TaskDeferred

from airflow_context import task_context
from small_lake import NOW, SmallLake, day, interval, known, load, publish
from tidegate.ledger.letting_go import let_go
from tidegate.model.run import Run
from tidegate_airflow.sensors import ChangesSensor, PartitionCommitSensor
from tidegate_airflow.triggers import GIVE_WAY, PartitionTrigger, WindowTrigger

if TYPE_CHECKING:
    from tidegate.pipeline import Pipeline

pytestmark = pytest.mark.airflow

OWNER = "airflow:orders_publish/run-1"


@pytest.fixture
def pipeline(lake: SmallLake) -> Pipeline:
    lake.commit({1: 3})
    lake.commit({2: 3})
    return lake.pipeline()


@pytest.mark.parametrize(
    "trigger",
    [
        PartitionTrigger("orders", OWNER, "2026-02-01", 2.0),
        WindowTrigger("orders", OWNER, 7, 2.0),
    ],
    ids=["partition", "window"],
)
def test_trigger_serialized_comes_back_as_it_was(trigger: PartitionTrigger | WindowTrigger) -> None:
    path, arguments = trigger.serialize()

    again = import_string(path)(**arguments)

    assert type(again) is type(trigger)
    assert again.serialize() == trigger.serialize()


def test_partition_trigger_waits_while_the_watermark_is_behind(pipeline: Pipeline) -> None:
    load(pipeline, interval(1))
    trigger = PartitionTrigger("orders", OWNER, "2026-02-01", 2.0)

    assert not trigger.has_work(NOW)
    assert not trigger.has_work(NOW + GIVE_WAY * 2)


def test_partition_trigger_gives_way_for_a_moment_and_then_fires(pipeline: Pipeline) -> None:
    load(pipeline, interval(2))
    trigger = PartitionTrigger("orders", OWNER, "2026-02-01", 2.0)

    looks = [trigger.has_work(NOW + offset) for offset in (timedelta(0), GIVE_WAY / 2, GIVE_WAY)]

    assert looks == [False, False, True]


def test_partition_trigger_gives_way_anew_after_a_run_had_the_claim(pipeline: Pipeline) -> None:
    load(pipeline, interval(2))
    trigger = PartitionTrigger("orders", OWNER, "2026-02-01", 2.0)
    another = "airflow:orders_publish/another"
    looks = [trigger.has_work(NOW)]
    pipeline.propose(day(1), another, NOW)
    looks.append(trigger.has_work(NOW + GIVE_WAY))
    let_go(pipeline.ledger, another)

    looks += [trigger.has_work(NOW + GIVE_WAY * times) for times in (1.5, 2, 2.5)]

    assert looks == [False, False, False, False, True]


def test_partition_trigger_waits_for_the_run_that_has_the_claim(pipeline: Pipeline) -> None:
    load(pipeline, interval(2))
    pipeline.propose(day(1), "airflow:orders_publish/another", NOW)
    trigger = PartitionTrigger("orders", OWNER, "2026-02-01", 2.0)

    looks = [trigger.has_work(NOW + GIVE_WAY * number) for number in range(4)]

    assert looks == [False] * 4


def test_partition_trigger_logs_which_run_is_publishing_the_partition(
    pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    load(pipeline, interval(2))
    pipeline.propose(day(1), "airflow:orders_publish/another", NOW)
    trigger = PartitionTrigger("orders", OWNER, "2026-02-01", 2.0)

    with caplog.at_level(logging.INFO, "tidegate_airflow"):
        trigger.has_work(NOW)
        trigger.has_work(NOW)

    (line,) = [line for line in caplog.messages if "2026-02-01" in line]
    assert line.startswith("waiting: dt=2026-02-01 is worked on by run another of orders_publish")
    assert "has passed" not in line


def test_partition_trigger_logs_why_it_waits_whenever_that_has_changed(
    lake: SmallLake, caplog: pytest.LogCaptureFixture
) -> None:
    lake.commit({1: 3})
    pipeline = lake.pipeline()
    load(pipeline, interval(1))
    trigger = PartitionTrigger("orders", OWNER, "2026-02-01", 2.0)

    with caplog.at_level(logging.INFO, "tidegate_airflow"):
        trigger.has_work(NOW)
        trigger.has_work(NOW)
        lake.commit({1: 30})
        load(pipeline, interval(2))
        trigger.has_work(NOW)

    first, second = [line for line in caplog.messages if "not yet" in line]
    assert first.startswith("2026-02-01: not yet: WATERMARK_BEHIND")
    assert first != second


def test_partition_trigger_fires_at_once_when_another_run_published(pipeline: Pipeline) -> None:
    load(pipeline, interval(2))
    publish(pipeline)
    trigger = PartitionTrigger("orders", OWNER, "2026-02-01", 2.0)

    assert trigger.has_work(NOW)


def test_window_trigger_waits_for_the_run_that_holds_the_window(pipeline: Pipeline) -> None:
    holder = Run("run-1", "airflow:orders_load/run-1", interval(1))
    (taken,) = pipeline.plan(holder, NOW)
    trigger = WindowTrigger("orders", "airflow:orders_load/run-2", taken.sequence, 2.0)

    assert not trigger.has_work(NOW)
    assert WindowTrigger("orders", holder.owner, taken.sequence, 2.0).has_work(NOW)


def test_window_trigger_logs_which_run_took_over_from_the_one_it_waited_for(
    pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    (taken,) = pipeline.plan(Run("run-1", "airflow:orders_load/run-1", interval(1)), NOW)
    trigger = WindowTrigger("orders", "airflow:orders_load/run-3", taken.sequence, 2.0)

    with caplog.at_level(logging.INFO, "tidegate_airflow"):
        trigger.has_work(NOW)
        let_go(pipeline.ledger, "airflow:orders_load/run-1")
        pipeline.plan(Run("run-2", "airflow:orders_load/run-2", interval(2)), NOW)
        trigger.has_work(NOW)
        trigger.has_work(NOW)

    (line,) = [line for line in caplog.messages if line.startswith("waiting: ")]
    assert "window 1 is worked on by run run-2 of orders_load" in line


def test_trigger_run_fires_one_event_and_ends(pipeline: Pipeline) -> None:
    load(pipeline, interval(2))
    publish(pipeline)
    trigger = PartitionTrigger("orders", OWNER, "2026-02-01", 0.01)

    async def events() -> list[object]:
        return [event async for event in trigger.run()]

    assert len(asyncio.run(asyncio.wait_for(events(), 10))) == 1


def test_partition_sensor_looks_once_before_it_defers(pipeline: Pipeline) -> None:
    load(pipeline, interval(1))
    sensor = PartitionCommitSensor(task_id="wait", pipeline="orders", poll_seconds=2.0, timeout=60)

    with pytest.raises(TaskDeferred) as deferred:
        sensor.resume(task_context(partition="2026-02-01"))

    assert isinstance(deferred.value.trigger, PartitionTrigger)
    assert deferred.value.timeout == timedelta(seconds=60)


def test_partition_sensor_skips_what_is_published(pipeline: Pipeline) -> None:
    load(pipeline, interval(2))
    publish(pipeline)
    sensor = PartitionCommitSensor(task_id="wait", pipeline="orders", poll_seconds=2.0)

    with pytest.raises(AirflowSkipException, match="dt=2026-02-01: nothing is pending"):
        sensor.resume(task_context(partition="2026-02-01"))


def test_changes_sensor_defers_while_another_run_holds_the_window(pipeline: Pipeline) -> None:
    # The clock of the sensor is the real one.
    from tidegate_airflow.runs import utc_now

    pipeline.plan(Run("run-1", "airflow:orders_load/run-1", interval(1)), utc_now())
    sensor = ChangesSensor(task_id="wait", pipeline="orders", poll_seconds=2.0)

    with pytest.raises(TaskDeferred) as deferred:
        sensor.resume(task_context(run="run-2", interval=interval(2)))

    assert isinstance(deferred.value.trigger, WindowTrigger)


def test_changes_sensor_skips_an_interval_without_commits(pipeline: Pipeline) -> None:
    load(pipeline, until=known(5))
    sensor = ChangesSensor(task_id="wait", pipeline="orders", poll_seconds=2.0)

    with pytest.raises(AirflowSkipException, match="nothing to load"):
        sensor.resume(task_context(run="run-3", interval=interval(4)))
