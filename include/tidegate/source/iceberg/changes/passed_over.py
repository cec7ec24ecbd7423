"""Find the rows that commits skipped by an append read remove: rows of the read, and others.

The rows that such a commit adds are not read, as `on_non_append: skip` defines. The rows that it
removes matter if the same read returns them: they would appear beside the rows that correct them
(ICE-3.5).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from tidegate.source.iceberg.deletes.index import DeleteIndex

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from tidegate.source.iceberg.deletes.entries import FoundDelete
    from tidegate.source.iceberg.deletes.rules import DeleteRules
    from tidegate.source.iceberg.manifests.entries import Entry


@dataclass(frozen=True)
class TakenAway:
    """The files that commits removed and added."""

    read: tuple[Entry, ...] = ()
    """Data files of the read that were removed, or may have deleted rows."""
    earlier: tuple[Entry, ...] = ()
    """Removed data files from before the read."""
    deletes: tuple[Entry, ...] = ()
    """Added delete files."""
    brought: tuple[Entry, ...] = ()
    """Added data files, which are not read."""


@dataclass(frozen=True)
class Step:
    """One commit that is not an append."""

    removed: Sequence[Entry]
    added: Sequence[Entry]
    deletes: Sequence[FoundDelete]
    is_rewrite: bool


@dataclass(frozen=True)
class PassedOver:
    """The changes of commits that are not appends, oldest first."""

    steps: tuple[Step, ...]
    rules: DeleteRules

    @property
    def metric_ids(self) -> frozenset[int]:
        """Columns whose metrics may prove that the deletes cannot affect a data file."""
        return frozenset(chain.from_iterable(found.file.field_ids for found in self._deletes))

    @property
    def _deletes(self) -> list[FoundDelete]:
        return [found for step in self.steps for found in step.deletes]

    def taken_away(self, read: Iterable[Entry]) -> TakenAway:
        """Separate what was removed from a read from what was there before it.

        Args:
            read: its data files, with metrics of `metric_ids`.
        """
        own = _by_path(read)
        hit: dict[str, Entry] = {}
        earlier: dict[str, Entry] = {}
        brought: dict[str, Entry] = {}
        for step in self.steps:
            removed, added = _by_path(step.removed), _by_path(step.added)
            if step.is_rewrite:
                # A rewritten file has the rows of its predecessors.
                for files in (own, brought):
                    files |= added if files.keys() & removed.keys() else {}
                continue
            # A vector may replace an older one of the same file, so each commit has its own index.
            index = DeleteIndex(self.rules, step.deletes)
            hit |= {
                path: entry
                for path, entry in own.items()
                if path in removed or index.touches(entry)
            }
            earlier |= _without(removed, own.keys() | brought.keys())
            brought = _without(brought, removed.keys()) | added
        deletes = tuple(found.entry for found in self._deletes)
        return TakenAway(*map(tuple, (hit.values(), earlier.values(), deletes, brought.values())))


def _by_path(entries: Iterable[Entry]) -> dict[str, Entry]:
    return {entry.path: entry for entry in entries}


def _without(files: Mapping[str, Entry], paths: Collection[str]) -> dict[str, Entry]:
    return {path: entry for path, entry in files.items() if path not in paths}
