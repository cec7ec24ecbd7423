"""Threads: messages in plan order, the first error as itself, nothing begun after it."""

from __future__ import annotations

import threading
import time

import pytest

from tidegate.errors import SourceFileGone, StorageFull
from tidegate.execute.local import LocalExecutor
from tidegate.model.message import CommitMessage, EventTimes


def message(name: str, attempt: str = "") -> CommitMessage:
    return CommitMessage(name, attempt, (), (), 0, 0, EventTimes())


def test_run_splits_that_end_out_of_order_come_in_order() -> None:
    def task(plan_uri: str, index: int, attempt: str) -> tuple[CommitMessage, ...]:
        time.sleep(0.01 * (3 - index))
        return (message(f"{index}a"), message(f"{index}b"))

    found = [item.sub_split for item in LocalExecutor(3).run(task, "plan", [0, 1, 2], "w1")]

    assert found == ["0a", "0b", "1a", "1b", "2a", "2b"]


def test_run_attempts_are_named_by_window_attempt_and_split() -> None:
    def task(plan_uri: str, index: int, attempt: str) -> tuple[CommitMessage, ...]:
        return (message(plan_uri, attempt),)

    found = [item.attempt for item in LocalExecutor(2).run(task, "plan", [4, 7], "w3")]

    assert found == ["w3.t4", "w3.t7"]


def test_run_no_splits_starts_nothing() -> None:
    before = threading.active_count()

    assert list(LocalExecutor().run(lambda *_: (), "plan", [], "w1")) == []
    assert threading.active_count() == before


def test_run_workers_bound_the_splits_at_a_time() -> None:
    running = most = 0
    lock = threading.Lock()

    def task(plan_uri: str, index: int, attempt: str) -> tuple[CommitMessage, ...]:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.002)
        with lock:
            running -= 1
        return ()

    list(LocalExecutor(2).run(task, "plan", range(12), "w1"))

    assert most == 2


def test_run_failing_split_is_raised_as_itself_and_later_ones_never_begin() -> None:
    begun: list[int] = []
    slow = threading.Event()

    def task(plan_uri: str, index: int, attempt: str) -> tuple[CommitMessage, ...]:
        begun.append(index)
        if index == 1:
            raise SourceFileGone(path="s3://lake/gone.parquet")
        slow.wait(0.2)
        return (message(str(index)),)

    with pytest.raises(SourceFileGone, match=r"gone\.parquet"):
        list(LocalExecutor(2).run(task, "plan", range(50), "w1"))

    assert len(begun) < 10


def test_run_failing_late_split_does_not_wait_for_a_slow_early_one_to_stop_the_rest() -> None:
    begun: list[int] = []
    failed = threading.Event()

    def task(plan_uri: str, index: int, attempt: str) -> tuple[CommitMessage, ...]:
        begun.append(index)
        if index == 0:
            failed.wait(5)
            time.sleep(0.05)
        if index == 3:
            failed.set()
            raise StorageFull(path="/lake", problem="No space left on device")
        return ()

    with pytest.raises(StorageFull):
        list(LocalExecutor(2).run(task, "plan", range(100), "w1"))

    assert len(begun) < 20


def test_run_caller_that_stops_asking_leaves_no_thread() -> None:
    before = threading.active_count()
    run = LocalExecutor(2).run(lambda _, index, __: (message(str(index)),), "plan", range(20), "w1")

    next(run)
    run.close()

    assert threading.active_count() == before
