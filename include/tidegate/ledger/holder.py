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
    SAID_GONE = "said gone"
    """A person said that the holder does not wait: as for one that renews, time decides."""


@dataclass(frozen=True)
class Way:
    """A command that goes on once a holder is gone."""

    words: tuple[object, ...]
    does: str
    """What it does then, as in "finishes what it left"."""
    release: tuple[object, ...] = ()
    """The command by which a person takes something from a run that is gone for good, if any."""
    takes_over: bool = True
    """Whether it does so itself with `--take-over`; otherwise it is released before."""


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
    asked: Way | None = None
    """What a person asked for, if it is not to finish what another holder left."""

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
        if life in {Life.RENEWING, Life.SAID_GONE}:
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

    def outlook(self, owner: str, expires: datetime | None, at: datetime, way: Way) -> str:
        """Return what will happen to what `owner` holds, and what a person may do about it.

        Args:
            owner: who holds it; it may not be taken from this one.
            expires: when it expires without another renewal.
            at: the ledger's time.
            way: the command that continues the work.
        """
        when = f"after {_text(expires)}" if expires is not None and expires > at else "now"
        life = self.life_of(owner)
        if life is Life.WAITING:
            return (
                "It may be waiting between two tasks, which only Airflow can tell: wait for it, "
                f"or clear it there. If it is gone for good, {_for_good(way, when)}."
            )
        option = ("--take-over",) if life is Life.SAID_GONE and way.takes_over else ()
        return (
            "Wait for it. If it is gone and does not renew again, "
            f"`{command(*way.words, *option)}` {when} {way.does}."
        )


def _for_good(way: Way, when: str) -> str:
    """Return what helps if a run that may wait is gone for good."""
    if not way.takes_over:
        released = f"`{command(*way.release)}` {when} takes it from that run"
        then = f", and `{command(*way.words)}` then {way.does}"
        return released if way.words == way.release else released + then
    itself = f"`{command(*way.words, '--take-over')}` {when} {way.does}"
    if not way.release:
        return itself
    return f"{itself}, or `{command(*way.release)}` leaves it to the next run"


def _text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}Z"
