from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from tidegate.demo.interrupts import ended_like_interrupted, interrupts_deferred

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _interruptible() -> Iterator[None]:
    """A shell that starts tests in the background makes them ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_interrupt_in_a_deferred_block_comes_after_it() -> None:
    done = []

    def work() -> None:
        with interrupts_deferred():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)
            done.append("block")

    with pytest.raises(KeyboardInterrupt):
        work()

    assert done == ["block"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_termination_cleans_up_like_an_interrupt(number: signal.Signals) -> None:
    before = signal.getsignal(number)

    def work() -> None:
        with ended_like_interrupted():
            os.kill(os.getpid(), number)
            time.sleep(1)

    with pytest.raises(KeyboardInterrupt):
        work()

    assert signal.getsignal(number) == before
