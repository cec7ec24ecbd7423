"""Where runs begin: a pipeline that nobody ran yet, and one with work at every stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from race.session import Session, Told
from race.verbs import day, load, publish

if TYPE_CHECKING:
    from race.world import World

FRESH = "fresh"
"""Two commits have landed; nothing was loaded."""
BUSY = "busy"
"""Two windows are published, a third is announced: day 1 is pending, day 2 held. A fourth commit
has landed. The older copy of the ledger knows the first window only."""


def make(world: World) -> None:
    """Make the world with everything that runs begin from."""
    world.make()
    world.show(2)
    world.save(FRESH)
    session = Session(world, Told(), "before", world.clock.wait)
    for number in (1, 2):
        world.show(number)
        load(session)
        publish(session)
        if number == 1:
            world.save_ledger("older")
    world.show(3)
    load(session)
    session.pipeline().publish(day(session, 2), session.owner, session.now())
    world.show(4)
    world.save(BUSY)
    if session.told.refused:
        raise AssertionError(session.told)
