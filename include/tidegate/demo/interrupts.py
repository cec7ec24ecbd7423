"""Defer an interrupt during a short piece of work, and handle other signals like one."""

from __future__ import annotations

import contextlib
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Finish a short, bounded piece of work before an interrupt takes effect."""
    caught: list[int] = []
    before = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Only the main thread may set handlers, and only the main thread is interrupted.
        with contextlib.suppress(ValueError):
            before[number] = signal.signal(number, lambda sent, _frame: caught.append(sent))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if caught:
            signal.raise_signal(caught[0])


@contextlib.contextmanager
def ended_like_interrupted() -> Iterator[None]:
    """Handle SIGTERM and SIGHUP like Ctrl-C, so that they clean up as well."""

    def interrupt(_sent: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = {
        number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
