"""Who may take a window or a claim from whom. Asks nobody by itself and reads no clock."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from tidegate.errors.commands import command

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, timedelta


class Life(Enum):
    """What is known of a holder's life besides its renewals."""

    GONE = "gone"
    """It has ended: what it holds may be taken at once."""
    RENEWING = "renewing"
    """It renews as long as it lives: what it holds may be taken once its time is over."""
    WAITING = "waiting"
    """It may live on without renewing: what it holds is never taken by time alone."""


@dataclass(frozen=True)
class Holder:
    """Who takes a window or a claim, and how it finds out what became of another holder.

    A holder is dead when it was not renewed for `timeout` by the ledger's time, unless it may live
    on without that, or when it is known to be gone. Taking from a holder that lives after all does
    no harm to the data, since the fence goes up, but the work of that holder is lost.
    """

    owner: str
    now: datetime
    """Clock of the command: noted, never compared."""
    timeout: timedelta
    life_of: Callable[[str], Life] = lambda _owner: Life.RENEWING

    def may_take(self, owner: str | None, expires: datetime | None, at: datetime) -> bool:
        """Return whether what `owner` holds until `expires` may be taken.

        Args:
            owner: who holds it; None if nobody does.
            expires: until when without another renewal.
            at: the ledger's time.
        """
        if owner is None or owner == self.owner:
            return True
        life = self.life_of(owner)
        if life is Life.RENEWING:
            return expires is not None and expires <= at
        return life is Life.GONE

    def asked_about(self, owner: str | None) -> Holder:
        """Return the same holder with what became of `owner` found out.

        Outside of any transaction, because the answer may come from another process or host. An
        owner that comes between has just begun, so that its time decides.
        """
        if owner is None or owner == self.owner:
            return self
        life = self.life_of(owner)
        return replace(self, life_of=lambda other: life if other == owner else Life.RENEWING)

    def renewed(self, expires: datetime | None) -> str:
        """Write when the current holder renewed last."""
        return _text(expires - self.timeout) if expires else "an unknown time"

    def outlook(self, owner: str, expires: datetime | None, *words: object) -> str:
        """Write what will become of what `owner` holds, and what a person may do about it.

        Args:
            owner: who holds it.
            expires: until when without another renewal.
            words: of the command that goes on with it.
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
