"""Choose which schedules to run: each change of the turn that can matter, and none that cannot.

Where the turn changes before a step that has nothing to do with what the other actor then does,
changing it after that step gives the same; such schedules are left out.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from race.scheduler import Listed, Turn
from race.steps import Footprint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from race.steps import Step
    from race.walk import Ran

    Runner = Callable[[list[Turn]], Ran]


def one_change(runner: Runner, *, late: bool = False, stride: int = 1) -> Iterator[Ran]:
    """Run A up to each of its steps, then B to its end, then A to its end.

    Args:
        runner: runs turns.
        late: whether all claims run out when the turn changes.
        stride: of the steps that matter, every how manieth is tried.
    """
    whole = runner([Turn(0), Turn(1)])
    yield whole
    alone = _steps_of(0, whole)
    at = 0
    while at < len(alone):
        ran = runner([Turn(0, at), Turn(1, late=late)])
        yield ran
        meanwhile = Footprint.of(_steps_of(1, ran))
        at = _after_conflicts(stride, alone, at, meanwhile)


def deaths(runner: Runner, *, stride: int = 1) -> Iterator[Ran]:
    """Kill A at each of its steps, and run B to its end: what A only read left nothing."""
    alone = _steps_of(0, runner([Turn(0), Turn(1)]))
    seen = (at for at in range(len(alone) + 1) if at == 0 or alone[at - 1].is_seen)
    for at in itertools.islice(seen, None, None, stride):
        yield runner([Turn(0, at, dies=True), Turn(1)])


def two_changes(runner: Runner, *, stride: int = 1) -> Iterator[Ran]:
    """Run A up to each of its steps, B up to each of its, A to its end, then B."""
    alone = _steps_of(0, runner([Turn(0), Turn(1)]))
    at = 0
    while at <= len(alone):
        whole = runner([Turn(0, at), Turn(1)])
        theirs = _steps_of(1, whole)
        until = 1
        while until < len(theirs):
            ran = runner([Turn(0, at), Turn(1, until), Turn(0)])
            yield ran
            mine = Footprint.of(_steps_of(0, ran)[at:])
            until = _after_conflicts(stride, theirs, until, mine)
        at = _after_conflicts(stride, alone, at, Footprint.of(theirs))


def _after_conflicts(many: int, steps: list[Step], at: int, meanwhile: Footprint) -> int:
    """Give the place after so many steps that cannot be swapped with what happened meanwhile."""
    for _ in range(many):
        while at < len(steps) and not steps[at].conflicts(meanwhile):
            at += 1
        at += 1
    return at


def _steps_of(actor: int, ran: Ran) -> list[Step]:
    return [step for index, step in ran.steps if index == actor]


def listed(turns: list[Turn]) -> Listed:
    """Give turns as a choice; what follows them is every actor to its end."""
    return Listed(list(turns))
