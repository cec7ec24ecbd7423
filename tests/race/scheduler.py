"""Run actors one at a time, and let a schedule say at which of their steps the turn changes.

An actor is a thread that has the turn or waits for it. Before each step that others can see or
change it asks here, so that a run is a list of turns: who, and up to which of its steps. The same
list gives the same run.
"""

from __future__ import annotations

import random
import re
import sys
import threading
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from race.steps import Step

_NAMES = "ABCDEFG"
_STUCK_SECONDS = 60
_TURN = re.compile(r"(?P<late>\+?)(?P<name>[A-G])(?P<steps>\d*)(?P<dies>x?)")


class Death(BaseException):
    """The actor's process was killed: nothing catches this, and nothing more happens."""


@dataclass(frozen=True)
class Turn:
    """Who goes on, how far, and how that ends."""

    actor: int
    steps: int | None = None
    """Steps until the turn changes; None: to the actor's end."""
    dies: bool = False
    """Whether it is killed then."""
    late: bool = False
    """Whether all claims run out before."""

    def __str__(self) -> str:
        steps = "" if self.steps is None else self.steps
        return f"{'+' * self.late}{_NAMES[self.actor]}{steps}{'x' * self.dies}"


def parse_turns(text: str) -> list[Turn]:
    """Read turns as `+B12x`: hours later B makes 12 steps and is killed."""
    turns = []
    for word in text.split():
        found = _TURN.fullmatch(word)
        if found is None:
            msg = f"{word}: expected a turn such as A, A12, A12x or +B"
            raise ValueError(msg)
        steps = int(found["steps"]) if found["steps"] else None
        actor = _NAMES.index(found["name"])
        turns.append(Turn(actor, steps, bool(found["dies"]), bool(found["late"])))
    return turns


class Choice(Protocol):
    """Gives the turns of a run, one after the other."""

    def next(self, alive: list[int]) -> Turn:
        """Choose who goes on, among the actors that have not ended."""
        ...


@dataclass
class Listed:
    """The turns of a list, then every actor to its end."""

    turns: list[Turn]

    def next(self, alive: list[int]) -> Turn:
        """Give the next turn of an actor that still lives."""
        while self.turns:
            turn = self.turns.pop(0)
            if turn.actor in alive:
                return turn
        return Turn(alive[0])


@dataclass
class Drawn:
    """Turns drawn by a seed: a few changes anywhere, sometimes a death, sometimes hours between."""

    seed: int
    longest: int = 120

    def __post_init__(self) -> None:
        """Begin the sequence."""
        self._random = random.Random(self.seed)
        self._turns = 0

    def next(self, alive: list[int]) -> Turn:
        """Draw the next turn."""
        self._turns += 1
        actor = self._random.choice(alive)
        if self._turns > 12:
            return Turn(actor)
        # Short turns and long ones alike: what hurts may be one step or half a command apart.
        steps = int(self.longest ** self._random.random())
        dies = self._random.random() < 0.08
        late = self._random.random() < 0.08
        return Turn(actor, steps, dies, late)


@dataclass
class Actor:
    """One simulated process."""

    index: int
    work: Callable[[], None]
    turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    thread: threading.Thread | None = None
    ended: bool = False
    killed: bool = False
    transactions: int = 0
    """How many it has open: the turn never changes inside of one, others would wait for it."""
    failure: str | None = None

    @property
    def name(self) -> str:
        """How schedules call it."""
        return _NAMES[self.index]


class Scheduler:
    """One run of some actors."""

    def __init__(
        self,
        works: Iterable[Callable[[], None]],
        choice: Choice,
        *,
        watch: Callable[[], None],
        wait: Callable[[], None],
    ) -> None:
        """Prepare; nobody has begun.

        Args:
            works: what each actor does.
            choice: of turns.
            watch: called between any two steps.
            wait: lets the time pass after which claims run out.
        """
        self.actors = [Actor(index, work) for index, work in enumerate(works)]
        self.taken: list[Turn] = []
        self.steps: list[tuple[int, Step]] = []
        self._choice = choice
        self._watch = watch
        self._wait = wait
        self._now: Actor = self.actors[0]
        self._left: int | None = None
        self._turn = Turn(0)
        self._done = threading.Semaphore(0)
        self._asked = 0

    @property
    def schedule(self) -> str:
        """The turns that were taken: the same run again."""
        return " ".join(map(str, self.taken))

    def run(self) -> None:
        """Give turns until every actor has ended."""
        for actor in self.actors:
            actor.thread = threading.Thread(target=self._live, args=[actor], daemon=True)
            actor.thread.start()
        self._draw()
        self._now.turn.release()
        if not self._done.acquire(timeout=_STUCK_SECONDS):
            msg = f"stuck after {self.schedule}\n{_stacks()}"
            raise AssertionError(msg)
        for actor in self.actors:
            if actor.thread is not None:
                actor.thread.join()

    @property
    def is_new_turn(self) -> bool:
        """Whether the turn changed since this was asked."""
        found, self._asked = len(self.taken) != self._asked, len(self.taken)
        return found

    @property
    def current(self) -> Actor | None:
        """The actor whose thread asks; None for anybody else's."""
        mine = threading.current_thread()
        return self._now if self._now.thread is mine else None

    def reach(self, step: Step) -> None:
        """Stand before a step that others may see; return when it is to be done.

        Raises:
            Death: the actor's process is killed here.
        """
        actor = self.current
        if actor is None:
            return
        if actor.killed:
            raise Death
        if actor.transactions == 0:
            self._watch()
            while self._left == 0:
                self._change(actor)
            if self._left is not None:
                self._left -= 1
        self.steps.append((actor.index, step))

    def pause(self) -> None:
        """Give the turn away because another actor is in the way; alone, let its claims run out."""
        actor = self.current
        if actor is None:
            return
        self._left = 0
        if self._alive(but=actor):
            self._change(actor, but=actor)
        else:
            self._wait()
            self._left = None

    def _live(self, actor: Actor) -> None:
        actor.turn.acquire()
        try:
            self._check_death(actor)
            actor.work()
        except Death:
            actor.killed = True
        except BaseException:  # noqa: BLE001 (told by the main thread)
            actor.failure = traceback.format_exc()
        actor.ended = True
        if self._alive():
            self._draw()
            self._now.turn.release()
        else:
            self._done.release()

    def _alive(self, but: Actor | None = None) -> list[int]:
        return [item.index for item in self.actors if not item.ended and item is not but]

    def _draw(self, but: Actor | None = None) -> None:
        turn = self._choice.next(self._alive(but))
        if turn.late:
            self._wait()
        self.taken.append(turn)
        self._turn, self._now, self._left = turn, self.actors[turn.actor], turn.steps

    def _change(self, actor: Actor, but: Actor | None = None) -> None:
        """End a turn: its actor is killed, or waits for the next one."""
        if but is None and self._turn.dies:
            actor.killed = True
            raise Death
        self._draw(but)
        if self._now is not actor:
            self._now.turn.release()
            actor.turn.acquire()
        self._check_death(actor)

    def _check_death(self, actor: Actor) -> None:
        if actor is self._now and self._turn.dies and self._left == 0:
            actor.killed = True
            raise Death


def _stacks() -> str:
    frames = sys._current_frames().values()
    return "\n".join("".join(traceback.format_stack(frame)) for frame in frames)
