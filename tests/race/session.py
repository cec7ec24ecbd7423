"""One actor's side of a race: what it may do, what it was told, and how it takes a refusal.

A verb that is refused does what the error's remedy says, here and nowhere else: it waits and tries
again, restores the ledger, or lets the successor finish.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from crash.scenario import in_turn
from tidegate.errors import TidegateError, TransientError
from tidegate.model.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from race.world import World
    from tidegate.model.partition import Partition
    from tidegate.pipeline import Pipeline

OURS = "orders"
OTHERS = ("twin", "other")
"""Pipelines that have no business at the target of ours, unless they were first."""
_COMMANDS = re.compile(r"`tidegate (\w+)")
_PATIENCE = 5
"""How often a verb is tried again."""
LOST = {"LedgerLost", "LedgerBehind"}
"""Refusals whose remedy is `fsck --rebuild`."""
OVERTAKEN = {"FenceLost", "PublicationLapsed", "NotApproved", "NotHeld", "DecisionRefused"}
"""Refusals after which nothing is to be done: somebody else did it, or does."""
FORGOTTEN = {"WindowNotFound", "PartitionNotFound"}
"""Refusals of what a ledger that was written again does not know."""
OWNED = {"TargetAround", "TargetOwned"}
"""Refusals of a pipeline that came second."""
CLEANED = {"SourceFileGone", "HudiFilesCleaned", "HudiChangesLost"}
"""Refusals of a window whose files the source deleted: it is given up, or the pipeline reset."""
NO_HISTORY = {"SnapshotNotFound", "HistoryTruncated"}
"""Refusals of a replay whose commits were expired."""


@dataclass
class Told:
    """What actors were told, and what they were shown before they decided."""

    refused: list[str] = field(default_factory=list)
    """Names of errors that ended a verb."""
    wrong: list[str] = field(default_factory=list)
    """What must never be told."""
    restored: bool = False
    """Whether somebody exchanged the ledger, or wrote it again."""
    approved: set[tuple[Partition, str]] = field(default_factory=set)
    """Partition and digest of what a person saw and approved, or died approving."""
    rejected: set[tuple[Partition, str]] = field(default_factory=set)
    """The same of what a person was told is rejected."""


@dataclass
class Session:
    """One actor: a process, or the tasks of an Airflow run."""

    world: World
    told: Told
    owner: str
    pause: Callable[[], None]
    name: str = OURS

    def pipeline(self, name: str | None = None) -> Pipeline:
        """Open the session's pipeline, or another one."""
        return self.world.pipeline(name or self.name)

    def now(self) -> datetime:
        """Look at the clock: once per command."""
        return self.world.clock.now()

    def run(self, now: datetime) -> Run:
        """Name a run of this actor."""
        return Run(f"run-{self.owner}-{now.isoformat()}", self.owner)

    def attempt(self, verb: Callable[[], Any], ends: set[str] = OVERTAKEN) -> Any:
        """Do a verb, and what the remedies of its refusals say."""
        for _ in range(_PATIENCE):
            try:
                return verb()
            except TransientError as refused:
                last = refused.code
                self.pause()
            except TidegateError as refused:
                last = refused.code
                if last in LOST:
                    self.restore()
                    continue
                if last in CLEANED and self.follow(refused, ends):
                    continue
                self.told.refused.append(last)
                if last not in ends | self._understood:
                    self.told.wrong.append(f"{last}: {refused}")
                return None
        self.told.refused.append(last)
        if last in CLEANED:
            self.told.wrong.append(f"{last} after {_PATIENCE} loads")
        return None

    def follow(self, refused: TidegateError, ends: set[str]) -> bool:
        """Type the command that an error prints; whether the verb is to be tried again."""
        commands = _COMMANDS.findall(str(refused))
        act = self._reset if "reset" in commands else self._abandon
        assert {"reset", "abandon"}.intersection(commands), refused
        try:
            act()
        except TransientError:
            self.pause()
        except TidegateError as other:
            if other.code not in {"WindowNotFound", "AbandonRefused", *LOST, *CLEANED, *OVERTAKEN}:
                self.told.wrong.append(f"{other.code}: {other}")
        return refused.code not in ends

    def _abandon(self) -> None:
        opened, now = self.pipeline(), self.now()
        held = opened.ledger.windows.open()
        if held is not None:
            opened.abandon(held.window.sequence, self.owner, now, by="ada", comment="cleaned")

    def _reset(self) -> None:
        opened, now = self.pipeline(), self.now()
        opened.finish_load(opened.reset(self.run(now), now), now, in_turn)

    @property
    def _understood(self) -> set[str]:
        """Refusals that what others did so far explains."""
        expired = NO_HISTORY if self.world.expired else set()
        return expired | (FORGOTTEN if self.told.restored else set())

    def restore(self) -> None:
        """Write the ledger again, as `fsck --rebuild` does."""
        self.told.restored = True
        try:
            self.pipeline().restore_ledger()
        except TransientError:
            self.pause()
        except TidegateError as refused:
            self.told.refused.append(refused.code)
            if refused.code not in OVERTAKEN:
                self.told.wrong.append(f"{refused.code}: {refused}")
