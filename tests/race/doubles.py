"""Stand before every call that reaches storage, ledger or source, and let the scheduler decide.

Nothing of this is in the product: storage takes its system calls as a value, SQLAlchemy tells of
connections and statements, and a source is a value of its pipeline.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy import event

from race import steps
from race.moments import EARLIER
from race.steps import Step
from tidegate.storage import LocalStorage, OsCalls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from race.moments import Clock
    from race.scheduler import Scheduler

_PRIVATE = {"write", "copy_range", "sync", "rewrite"}
"""Calls on an open file: others see it only once it has its name."""
_LOOKING = {"scan": steps.listing, "status": functools.partial(steps.reading, "status")}
"""Calls that change nothing."""
_PARTS = ("timeline", "slicing", "reading", "hints", "kept", "protection")
_LOOKS = {"pin", "units", "protect", "row_groups", "footer_bounds"}
_TABLES = re.compile(r"\b(?:FROM|JOIN|UPDATE|INTO)\s+\"?(\w+)\"?", re.IGNORECASE)


@dataclass
class Stage:
    """Whose scheduler is asked; None between runs."""

    clock: Clock
    scheduler: Scheduler | None = None
    born: dict[int, datetime] = field(default_factory=dict)
    """Inode → when the file was made, by the clock of the run."""

    def reach(self, step: Step) -> Step:
        """Stand before a step."""
        if self.scheduler is not None:
            self.scheduler.reach(step)
        return step


@dataclass(frozen=True)
class RacingCalls(OsCalls):
    """`OsCalls` with each call that others can see a step."""

    stage: Stage = field(hash=False, compare=False)

    def __getattribute__(self, name: str) -> Any:
        """Stand before calls that look and those that change names."""
        found = super().__getattribute__(name)
        if name.startswith("_") or name not in vars(OsCalls) or name in _PRIVATE:
            return found

        def stepping(path: str, *rest: Any, **keys: Any) -> Any:
            looking = _LOOKING.get(name)
            step = looking(path) if looking else steps.changing(name, path, *rest)
            self.stage.reach(step)
            made = found(path, *rest, **keys)
            if name == "create":
                self.stage.born[os.fstat(made).st_ino] = self.stage.clock.time
            return made

        return stepping


class RacingStorage(LocalStorage):
    """A local storage whose every call is a step; each is equal to itself alone."""

    def __init__(self, stage: Stage) -> None:
        """Prepare."""
        super().__init__(RacingCalls(stage))
        object.__setattr__(self, "_stage", stage)

    _stage: Stage
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        """Say whether it is the same one: what was read through another is not believed."""
        return self is other

    def read_bytes(self, path: str) -> bytes:
        """Read a file."""
        self._stage.reach(steps.reading("read", path))
        return super().read_bytes(path)

    def sha256(self, path: str) -> str:
        """Hash a file."""
        self._stage.reach(steps.reading("sha256", path))
        return super().sha256(path)

    def modified(self, path: str) -> datetime | None:
        """Say when a file was made, by the clock of the run."""
        number = Path(path).stat().st_ino if self.exists(path) else None
        return self._stage.born.get(number, EARLIER) if number else None

    def sync(self, path: str) -> None:
        """Believe the disk: a process that dies loses nothing that it wrote."""

    def sync_all(self, root: str, names: Iterable[str]) -> None:
        """Believe the disk."""


class RacingSource:
    """A source whose looks at the table are steps."""

    def __init__(self, source: Any, stage: Stage) -> None:
        """Stand before a source."""
        self._source = source
        parts = ((name, getattr(source, name)) for name in _PARTS)
        self._parts = {name: part and RacingPart(part, stage) for name, part in parts}

    def __getattr__(self, name: str) -> Any:
        """Stand before its parts."""
        return self._parts[name] if name in _PARTS else getattr(self._source, name)


class RacingPart:
    """A part of a source whose looks at the table are steps."""

    def __init__(self, part: Any, stage: Stage) -> None:
        """Stand before a part."""
        self._part = part
        self._stage = stage

    def __getattr__(self, name: str) -> Any:
        """Stand before a look; what only computes on a pin is no step."""
        found = getattr(self._part, name)
        if name not in _LOOKS:
            return found

        @functools.wraps(found)
        def stepping(*arguments: Any, **keys: Any) -> Any:
            self._stage.reach(Step(f"source {name}", reads={steps.SOURCE}))
            return found(*arguments, **keys)

        return stepping


def watch_ledger(engine: sa.Engine, stage: Stage, written: Callable[[], None]) -> None:
    """Make each transaction one step, before it connects; the turn never changes inside of it.

    Connections are kept open between transactions, because opening one takes as long as a query.

    Args:
        engine: of the ledger.
        stage: whose scheduler is asked.
        written: called after a transaction that may have changed something.
    """
    running: dict[str, Step] = {}
    engine.pool = sa.pool.QueuePool(
        engine.pool._creator, dialect=engine.dialect, _dispatch=engine.pool.dispatch
    )
    connect = engine.raw_connection

    def connecting() -> Any:
        running["step"] = stage.reach(Step(f"ledger {_caller()}"))
        return connect()

    engine.raw_connection = connecting  # type: ignore[method-assign]

    @event.listens_for(engine, "begin")
    def _begin(_connection: sa.Connection) -> None:
        _count(stage, 1)

    @event.listens_for(engine, "before_cursor_execute")
    def _tables(_c: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        is_read, names = _touched(statement)
        found = running.get("step")
        if found is not None:
            (found.reads if is_read else found.writes).update(names)

    @event.listens_for(engine, "commit")
    def _commit(_connection: Any) -> None:
        _count(stage, -1)
        written()

    @event.listens_for(engine, "rollback")
    def _rollback(_connection: Any) -> None:
        _count(stage, -1)


def _count(stage: Stage, change: int) -> None:
    actor = stage.scheduler.current if stage.scheduler else None
    if actor is not None:
        actor.transactions += change


@functools.cache
def _touched(statement: str) -> tuple[bool, frozenset[str]]:
    is_read = statement.lstrip().upper().startswith(("SELECT", "PRAGMA", "BEGIN"))
    return is_read, frozenset(map(steps.table, _TABLES.findall(statement)))


def _caller() -> str:
    """Name the ledger's verb that opens the transaction."""
    frame = sys._getframe(1)
    found = "transaction"
    while frame is not None:
        name = frame.f_code.co_filename
        if "/tidegate/ledger/" in name:
            found = f"{Path(name).stem}.{frame.f_code.co_name}"
        elif found != "transaction":
            break
        frame = frame.f_back  # type: ignore[assignment]
    return found
