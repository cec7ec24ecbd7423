"""Requests side by side: all of them, in their order, and nothing is left running."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from tidegate.storage.s3_threads import answers


def test_results_are_in_the_order_of_what_was_asked() -> None:
    assert answers(lambda number: number * 2, range(40)) == [2 * it for it in range(40)]
    assert answers(str, []) == []


def test_several_are_asked_at_once() -> None:
    together = threading.Barrier(4, timeout=20)

    answers(lambda _number: together.wait(), range(4))


def test_first_failure_is_raised_once_all_have_ended() -> None:
    ended: list[int] = []

    def ask(number: int) -> None:
        if number in {1, 3}:
            message = f"number {number}"
            raise ValueError(message)
        time.sleep(0.1 * number)
        ended.append(number)

    with pytest.raises(ValueError, match="number 1"):
        answers(ask, range(5))

    assert sorted(ended) == [0, 2, 4]


def test_fork_has_threads_of_its_own() -> None:
    answers(str, range(2))

    child = os.fork()
    if child == 0:
        try:
            signal.alarm(10)
            os._exit(answers(str, range(2)) != ["0", "1"])
        finally:
            os._exit(1)

    assert os.waitpid(child, 0)[1] == 0
