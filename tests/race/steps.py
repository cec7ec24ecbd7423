"""What an actor does between two looks at the scheduler, and whether two such steps can be swapped.

A step names what it reads and writes: tables of the ledger, paths, listed directories, the source.
Steps that touch nothing in common give the same whatever their order, so that a turn need not
change between them.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

SOURCE = "source"


@dataclass
class Step:
    """One step; a ledger step gets its tables while it runs."""

    name: str
    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)

    @property
    def is_seen(self) -> bool:
        """Whether it leaves something that counts: not a file that has no name yet."""
        return bool(self.writes) and not self.name.startswith(("create ", "make_dir "))

    def conflicts(self, other: Footprint) -> bool:
        """Say whether doing this before or after what another did could differ."""
        return bool(
            self.writes & (other.reads | other.writes)
            or self.reads & other.writes
            or _folders(self.writes) & other.reads
            or _folders(other.writes) & self.reads
        )


@dataclass(frozen=True)
class Footprint:
    """What several steps read and write."""

    reads: frozenset[str]
    writes: frozenset[str]

    @classmethod
    def of(cls, steps: list[Step]) -> Footprint:
        """Join steps."""
        reads = frozenset(item for step in steps for item in step.reads)
        return cls(reads, frozenset(item for step in steps for item in step.writes))


def table(name: str) -> str:
    """Name a table of the ledger."""
    return f"table {name}"


def _folders(paths: AbstractSet[str]) -> set[str]:
    """Name the directories, as listing them is named, in which names come or go.

    A store lists all that is below an address, however deep.
    """
    on_disk = {f"{posixpath.dirname(item)}/" for item in paths if item.startswith("/")}
    parts = (item.split("/") for item in paths if item.startswith("s3:"))
    return on_disk | {
        f"{'/'.join(names[:end])}/" for names in parts for end in range(3, len(names))
    }


def reading(verb: str, path: str) -> Step:
    """Give the step of reading one file or looking at it."""
    return Step(f"{verb} {_short(path)}", reads={path})


def listing(path: str) -> Step:
    """Give the step of listing a directory."""
    return Step(f"list {_short(path)}", reads={f"{path}/"})


def changing(verb: str, *paths: str) -> Step:
    """Give the step of one system call that changes names."""
    return Step(f"{verb} {' '.join(map(_short, paths))}", writes=set(paths))


def _short(path: str) -> str:
    folder, name = posixpath.split(path)
    return f"{posixpath.basename(folder)}/{name}"
