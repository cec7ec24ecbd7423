"""Renew what a process holds while a long step runs. Decides nothing and takes nothing."""

from __future__ import annotations

import functools
import logging
import threading
from typing import TYPE_CHECKING, Self

from tidegate.errors import TransientError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import timedelta

    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import Claim
    from tidegate.model.partition import Partition

_log = logging.getLogger(__name__)

_RENEWALS_PER_TIMEOUT = 3
_LAST_RENEWAL_SECONDS = 10.0


class Renewing:
    """Renews in the background for as long as its context lasts.

    *Runs on:* a thread of the step's process, over a connection of its own. *Called:* once per
    step. *Failure:* a ledger that does not answer is asked again at the next turn; others cannot
    reach it either. Once a successor took over, nothing is renewed any more: `check` and the end of
    the context raise `FenceLost` unless `end` was called, and the successor's claim is never
    touched. Any other error also ends the renewals, and is raised there.

    Args:
        renewals: what is renewed at each turn; may be empty.
        timeout: how long each renewal holds.
        on_loss: called in the thread once renewals have ended, to end what the step waits for.
    """

    def __init__(
        self,
        renewals: Sequence[Callable[[], None]],
        timeout: timedelta,
        on_loss: Callable[[], None] = lambda: None,
    ) -> None:
        self._renewals = renewals
        self._seconds = timeout.total_seconds() / _RENEWALS_PER_TIMEOUT
        self._on_loss = on_loss
        self._ended = threading.Event()
        self._is_over = False
        self._lost: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="renew-claims", daemon=True)

    def __enter__(self) -> Self:
        if self._renewals:
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        """End the renewals; raise the error that ended them early, unless the process stops."""
        self._ended.set()
        if self._renewals:
            # A ledger that hangs must not delay a finished step; a late renewal does no harm.
            self._thread.join(_LAST_RENEWAL_SECONDS)
        if kind is None or issubclass(kind, Exception):
            self.check()

    def check(self) -> None:
        """Make sure that what is renewed is still held, unless that was ended.

        Raises:
            FenceLost: a successor took it over.
            Exception: the unforeseen error that ended the renewals.
        """
        if self._lost is not None and not self._is_over:
            raise self._lost

    def end(self) -> None:
        """Stop renewing, because the work is done: a successor can do no harm any more."""
        self._is_over = True
        self._ended.set()

    def renew(self) -> None:
        """Renew now, in the calling thread.

        Raises:
            FenceLost: a successor took over.
        """
        for renewal in self._renewals:
            renewal()

    def _run(self) -> None:
        while not self._ended.wait(self._seconds):
            try:
                self.renew()
            except TransientError as silent:
                _log.warning("could not renew, tried again soon: %s", silent)
            except Exception as lost:  # noqa: BLE001 - whoever waits for the step has to know
                self._lost = lost
                self._on_loss()
                return


def renewing_windows(
    ledger: Ledger,
    attempts: Mapping[int, int],
    timeout: timedelta,
    on_loss: Callable[[], None] = lambda: None,
) -> Renewing:
    """Return the renewals of windows: sequence → the caller's attempt."""
    renewals = [
        functools.partial(ledger.windows.renew, sequence, attempt, timeout)
        for sequence, attempt in attempts.items()
    ]
    return Renewing(renewals, timeout, on_loss)


def renewing_claim(
    ledger: Ledger, partition: Partition, claim: Claim, timeout: timedelta
) -> Renewing:
    """Return the renewals of a partition's claim."""
    renewal = functools.partial(ledger.partitions.renew, partition, claim, timeout)
    return Renewing([renewal], timeout)
