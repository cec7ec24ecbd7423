"""Decide who may take a window or a claim over. Asks nobody itself and reads no clock."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from tidegate.errors.commands import command

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, timedelta


class Life(Enum):
    """What is known about a holder besides its renewals."""

    GONE = "gone"
    """The holder has ended: what it holds may be taken at once."""
    RENEWING = "renewing"
    """The holder renews as long as it lives: what it holds may be taken once it has expired."""
    WAITING = "waiting"
    """The holder may be alive without renewing: what it holds is never taken by time alone."""


@dataclass(frozen=True)
class Holder:
    """Takes a window or a claim, and finds out whether another holder is alive.

    A holder is dead if it is known to be gone, or if it has not renewed for `timeout` by the
    ledger's time and cannot be alive without renewing. Taking over from a holder that is alive
    after all does no harm to the data, because the fence increases, but the work of that holder is
    lost.
    """

    owner: str
    now: datetime
    """Time of the command: recorded, never compared."""
    timeout: timedelta
    life_of: Callable[[str], Life] = lambda _owner: Life.RENEWING

    def may_take(self, owner: str | None, expires: datetime | None, at: datetime) -> bool:
        """Return whether what `owner` holds until `expires` may be taken.

        Args:
            owner: who holds it; None if nobody does.
            expires: when it expires without another renewal.
            at: the ledger's time.
        """
        if owner is None or owner == self.owner:
            return True
        life = self.life_of(owner)
        if life is Life.RENEWING:
            return expires is not None and expires <= at
        return life is Life.GONE

    def asked_about(self, owner: str | None) -> Holder:
        """Return the same holder after finding out whether `owner` is alive.

        Called outside of any transaction, because the answer may come from another process or host.
        An owner that comes in between has just begun, so that its time decides.
        """
        if owner is None or owner == self.owner:
            return self
        life = self.life_of(owner)
        return replace(self, life_of=lambda other: life if other == owner else Life.RENEWING)

    def renewed(self, expires: datetime | None) -> str:
        """Return when the current holder last renewed, as text."""
        return _text(expires - self.timeout) if expires else "an unknown time"

    def outlook(self, owner: str, expires: datetime | None, *words: object) -> str:
        """Return what will happen to what `owner` holds, and what a person may do about it.

        Args:
            owner: who holds it.
            expires: when it expires without another renewal.
            words: the command that continues the work.
        """
        until = _text(expires) if expires else "it has ended"
        if self.life_of(owner) is Life.WAITING:
            return (
                "It may be waiting between two tasks, which only Airflow can tell: wait for it, "
                "or clear it there. If it is gone for good, "
                f"`{command(*words, '--take-over')}` after {until} finishes what it left."
            )
        return (
            "Wait for it. If it is gone and does not renew again, "
            f"`{command(*words)}` after {until} finishes what it left."
        )


def _text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}Z"
