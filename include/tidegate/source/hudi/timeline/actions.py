"""The actions of a timeline, read from the names of its files (HUDI-T2). Opens nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_FILE = re.compile(
    r"(?P<requested>\d{14}|\d{17})(?:_(?P<completed>\d{14}|\d{17}))?"
    r"(?:[.](?P<action>[a-z]+))??(?:[.](?P<state>requested|inflight))?"
)
_DONE_AS: Mapping[str, str] = {
    "compaction": "commit",
    "logcompaction": "deltacommit",
    "clustering": "replacecommit",
}
"""Action of a pending service → action of the same one when it is done (HUDI-T4)."""
WRITES = frozenset({"commit", "deltacommit", "replacecommit"})
"""Actions that write files of data."""


@dataclass(frozen=True)
class Action:
    """One action, in the state in which it stands."""

    requested: str
    """Its requested time, as text: 14 or 17 digits, compared as text (HUDI-T3)."""
    kind: str
    """`commit`, `deltacommit`, `replacecommit`, `clean`, …: as it is when it is done."""
    completed: str | None = None
    """When it was done; None while it is pending. Layout 1 only has the requested time."""
    file: str = ""
    """The name of its newest file."""
    service: str | None = None
    """`compaction`, `logcompaction` or `clustering`, if a pending file's name says so."""

    @property
    def is_done(self) -> bool:
        """Whether it is done."""
        return self.completed is not None

    @property
    def order(self) -> tuple[str, str]:
        """Its place among done actions (HUDI-W3)."""
        return self.completed or "", self.requested


@dataclass(frozen=True)
class ActiveTimeline:
    """The actions of one listing of the active timeline, by requested time (HUDI-T14)."""

    actions: tuple[Action, ...]

    @classmethod
    def parse(cls, names: Iterable[str], layout: int) -> ActiveTimeline:
        """Read the names of a timeline folder's files; other files are ignored."""
        states: dict[tuple[str, str], dict[str, tuple[str, str | None, str | None]]] = {}
        for name in names:
            found = _FILE.fullmatch(name)
            if found is None:
                continue
            requested, completed, said, state = found.group(
                "requested", "completed", "action", "state"
            )
            if state is None and (said is None or (completed is None) != (layout == 1)):
                continue
            # A bare `.inflight` is a commit of layout 1.
            said = said or "commit"
            kind, service = _DONE_AS.get(said, said), said if said in _DONE_AS else None
            seen = states.setdefault((requested, kind), {})
            seen[state or "done"] = (name, completed or requested, service)
        return cls(tuple(_action(key, seen) for key, seen in sorted(states.items())))

    @cached_property
    def done(self) -> tuple[Action, ...]:
        """The done actions, in the order in which they were done."""
        return tuple(sorted((it for it in self.actions if it.is_done), key=lambda it: it.order))

    @cached_property
    def writes(self) -> Mapping[str, Action]:
        """Requested time → done action that wrote files of data."""
        return {it.requested: it for it in self.done if it.kind in WRITES}

    @cached_property
    def pending(self) -> Mapping[str, Action]:
        """Requested time → pending action that writes files of data."""
        return {it.requested: it for it in self.actions if not it.is_done and it.kind in WRITES}

    @cached_property
    def first(self) -> str | None:
        """The requested time before which every instant is archived, and so done (HUDI-T11).

        Instants that a savepoint holds stay when those around them are archived.
        """
        held = {it.requested for it in self.actions if it.kind == "savepoint"}
        own = [it.requested for it in self.actions if it.kind in WRITES]
        return min((it for it in own if it not in held), default=min(own, default=None))

    def is_committed(self, requested: str) -> bool:
        """Return whether a write is done, as far as the timeline shows it (HUDI-T11)."""
        if requested in self.pending:
            return False
        return requested in self.writes or (self.first is not None and requested < self.first)


def _action(key: tuple[str, str], seen: Mapping[str, tuple[str, str | None, str | None]]) -> Action:
    requested, kind = key
    service = next((said for _, _, said in seen.values() if said is not None), None)
    if "done" in seen:
        name, completed, _ = seen["done"]
        return Action(requested, kind, completed, name, service)
    name, _, _ = seen.get("inflight") or seen["requested"]
    return Action(requested, kind, None, name, service)
