"""Threads: messages in plan order, the first error as itself, nothing begun after it."""

from __future__ import annotations

import threading

import pytest

from tidegate.errors import SourceFileGone, StorageFull
from tidegate.execute import local
from tidegate.execute.local import LocalExecutor
from tidegate.model.message import CommitMessage

PATIENCE = 60
"""Seconds after which something that has to happen is taken for missing."""


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set once no split begins any more."""
    event = threading.Event()

    class Told(local._Turns):
        def stop(self) -> None:
            super().stop()
            event.set()

    monkeypatch.setattr(local, "_Turns", Told)
    return event


def message(name: str, attempt: str = "") -> CommitMessage:
    return CommitMessage(name, attempt)


def test_run_splits_that_end_out_of_order_come_in_order() -> None:
    ended = [threading.Event() for _ in range(3)]
    order: list[int] = []

    def task(plan_uri: str, index: int, attempt: str) -> tuple[CommitMessage, ...]:
        if index < 2:
            assert ended[index + 1].wait(PATIENCE)
        order.append(index)
        ended[index].set()
        return (message(f"{index}a"), message(f"{index}b"))

    found = [item.sub_split for item in LocalExecutor(3).run(task, "plan", [0, 1, 2], "w1")]

    assert order == [2, 1, 0]
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
    together = threading.Barrier(2)

    def task(plan_uri: str, index: int, attempt: str) -> tuple[CommitMessage, ...]:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        # Two splits are at work or this does not end; a third one would be counted above.
        together.wait(PATIENCE)
        with lock:
            running -= 1
        return ()

    list(LocalExecutor(2).run(task, "plan", range(12), "w1"))

    assert most == 2


def test_run_failing_split_is_raised_as_itself_and_later_ones_never_begin(
    stopped: threading.Event,
) -> None:
    begun: list[int] = []

    def task(plan_uri: str, index: int, attempt: str) -> tuple[CommitMessage, ...]:
        begun.append(index)
        if index == 1:
            raise SourceFileGone(path="s3://lake/gone.parquet")
        assert stopped.wait(PATIENCE)
        return (message(str(index)),)

    with pytest.raises(SourceFileGone, match=r"gone\.parquet"):
        list(LocalExecutor(2).run(task, "plan", range(50), "w1"))

    assert sorted(begun) == [0, 1]


def test_run_failing_late_split_does_not_wait_for_a_slow_early_one_to_stop_the_rest(
    stopped: threading.Event,
) -> None:
    begun: list[int] = []

    def task(plan_uri: str, index: int, attempt: str) -> tuple[CommitMessage, ...]:
        begun.append(index)
        if index == 0:
            assert stopped.wait(PATIENCE)
        if index == 3:
            raise StorageFull(path="/lake", problem="No space left on device")
        return ()

    with pytest.raises(StorageFull):
        list(LocalExecutor(2).run(task, "plan", range(100), "w1"))

    assert sorted(begun) == [0, 1, 2, 3]


def test_run_caller_that_stops_asking_leaves_no_thread() -> None:
    before = threading.active_count()
    run = LocalExecutor(2).run(lambda _, index, __: (message(str(index)),), "plan", range(20), "w1")

    next(run)
    run.close()

    assert threading.active_count() == before
