"""Run a race by a schedule, let everything settle, and look whether the truth holds."""

from __future__ import annotations

import json
import re
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from race.scheduler import Scheduler
from race.session import OTHERS, OURS, OWNED, Session, Told
from race.state import fingerprint
from race.truth import Progress, broken_marker, untruths
from race.verbs import IN_AIRFLOW, VERBS, decide, load
from race.world import RUN
from tidegate.errors import TidegateError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from race.scheduler import Choice
    from race.steps import Step
    from race.world import World

_WORD = re.compile(r"\b[A-Za-z]+\b")
_ROUNDS = 6
"""How often everything is tried again until nothing is pending."""


@dataclass(frozen=True)
class Race:
    """Where a run begins, and who takes part."""

    begin: str
    actors: tuple[str, ...]
    """Names of their verbs."""
    lost: bool = False
    """Whether the ledger is lost, and restored, before everything settles."""

    def __str__(self) -> str:
        lost = " --lost" * self.lost
        return f"--begin {self.begin} --actors {','.join(self.actors)}{lost}"


@dataclass
class Ran:
    """One run."""

    race: Race
    schedule: str
    steps: list[tuple[int, Step]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    @property
    def symptom(self) -> tuple[str, ...]:
        """Name what went wrong, without the rows, files and numbers that differ from run to run."""
        return tuple(sorted({" ".join(_WORD.findall(item)[:6]) for item in self.wrong}))

    def __str__(self) -> str:
        called = f"once {self.race} --schedule '{self.schedule}'"
        return "\n".join([called, *(f"    {item}" for item in self.wrong)])


def run(world: World, race: Race, choice: Choice) -> Ran:
    """Run a race and settle it.

    Args:
        world: is put to where the race begins.
        race: who takes part.
        choice: of turns.
    """
    world.begin(race.begin)
    told, progress = Told(), Progress(world)
    scheduler = _scheduler(world, race, choice, told, progress)
    world.stage.scheduler = scheduler
    try:
        scheduler.run()
    finally:
        world.stage.scheduler = None
    progress.look()
    ran = Ran(race, scheduler.schedule, scheduler.steps, told.wrong, told.refused)
    ran.wrong += [item.failure for item in scheduler.actors if item.failure]
    ran.wrong += _decided_otherwise(world, told)
    world.clock.wait()
    if race.lost:
        world.exchange_ledger("empty")
    state = f"{fingerprint(world)} {world.landed} {world.expired}"
    if state not in world.settled:
        world.settled[state] = _untruths_settled(world, progress, race)
    ran.wrong += world.settled[state]
    ran.wrong += progress.wrong
    return ran


def _scheduler(
    world: World, race: Race, choice: Choice, told: Told, progress: Progress
) -> Scheduler:
    """Give each verb an actor that is alive until it ends."""

    def watch() -> None:
        progress.look()
        found = broken_marker(world.target) if scheduler.is_new_turn else None
        if found is not None:
            told.wrong.append(found)

    def living(index: int, name: str) -> Callable[[], None]:
        def work() -> None:
            owner = f"{RUN if name in IN_AIRFLOW else 'cli:'}{index}"
            with world.living(owner):
                VERBS[name](Session(world, told, owner, scheduler.pause))

        return work

    works = [living(index, name) for index, name in enumerate(race.actors)]
    scheduler = Scheduler(works, choice, watch=watch, wait=world.clock.wait)
    return scheduler


def _untruths_settled(world: World, progress: Progress, race: Race) -> list[str]:
    """Settle, and say what is wrong then."""
    try:
        name, stuck = settle(world, progress, race)
        return [*stuck, *untruths(world, name)]
    except Exception:  # noqa: BLE001 (what nobody expects is found, too)
        return [traceback.format_exc()]


def settle(world: World, progress: Progress, race: Race) -> tuple[str, list[str]]:
    """Load, publish and approve until nothing is pending.

    Returns:
        The pipeline that the target belongs to, and what stands in the way of an end.
    """
    left: list[str] = []
    names = iter((OURS, *(item for item in race.actors if item in OTHERS)))
    name = next(names)
    for _ in range(_ROUNDS):
        told = Told()
        session = Session(world, told, "settle", world.clock.wait, name)
        left = [*_settle_once(session), *told.refused, *told.wrong]
        progress.look()
        world.clock.wait()
        if not left:
            return name, []
        if OWNED.intersection(told.refused):
            name = next(names, name)
    return name, [f"does not settle: {', '.join(left)}"]


def _settle_once(session: Session) -> list[str]:
    """Do everything once; what was not as it should stay."""
    announced = load(session)
    left = [f"windows {announced.windows}"] if announced and announced.windows else []
    opened = session.pipeline()
    try:
        for outcome in opened.publish_all(session.owner, session.now()):
            if outcome.error:
                left.append(f"{outcome.partition}: {outcome.error}")
        for state in opened.ledger.partitions.all():
            if state.pending != "none":
                left.append(f"{state.partition} is {state.name}")
            if state.pending == "held":
                _approve(session, state.partition)
    except TidegateError as refused:
        left.append(str(refused))
    # What is found is mended as it says: an announcer that lost its fence may leave such a file.
    if not left and any("--rebuild" in finding for finding in opened.findings()):
        session.restore()
        left.append("the ledger was written again")
    return left


def _approve(session: Session, partition: object) -> None:
    opened = session.pipeline()
    entry = opened.ledger.publications.proposed(partition)
    if entry is not None and entry.approval is not None and not entry.approval.approved:
        session.attempt(lambda: opened.reopen(partition, session.now()))
    elif decide(session, partition, approved=True):
        opened.publish(partition, session.owner, session.now())


def _decided_otherwise(world: World, told: Told) -> Iterator[str]:
    """Say what came out though a person rejected it, or by an approval that nobody gave."""
    opened = world.pipeline()
    for state in opened.ledger.partitions.all():
        for revision in opened.ledger.publications.revisions(state.partition):
            decided = state.partition, revision.digest
            plan = json.loads((world.work / revision.commit_plan).read_bytes())
            if decided in told.rejected:
                yield f"{state.partition}: {revision.digest} was rejected and is out"
            if plan["approval"] is not None and decided not in told.approved:
                yield f"{state.partition}: {revision.digest} is out, which nobody saw"
