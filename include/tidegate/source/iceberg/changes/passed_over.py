"""What the commits that an append read passes over take away: of its own rows, and of others.

What such a commit adds is lost to the read, as `on_non_append: skip` says. What it takes away is
not: a row that the same read brings would stand beside the row that corrects it (ICE-3.5).
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
    """What commits took away and brought, as files."""

    read: tuple[Entry, ...] = ()
    """Data files that the read brings: removed, or with rows that deletes may name."""
    earlier: tuple[Entry, ...] = ()
    """Removed data files that were there before the read began."""
    deletes: tuple[Entry, ...] = ()
    """Delete files that came."""
    brought: tuple[Entry, ...] = ()
    """Data files that came, and that nothing reads."""


@dataclass(frozen=True)
class Step:
    """One commit that is no append."""

    removed: Sequence[Entry]
    added: Sequence[Entry]
    deletes: Sequence[FoundDelete]
    is_rewrite: bool


@dataclass(frozen=True)
class PassedOver:
    """What the commits did that are no appends, oldest first."""

    steps: tuple[Step, ...]
    rules: DeleteRules

    @property
    def metric_ids(self) -> frozenset[int]:
        """Columns whose metrics may tell that the deletes cannot touch a data file."""
        return frozenset(chain.from_iterable(found.file.field_ids for found in self._deletes))

    @property
    def _deletes(self) -> list[FoundDelete]:
        return [found for step in self.steps for found in step.deletes]

    def taken_away(self, read: Iterable[Entry]) -> TakenAway:
        """Tell what was taken away of a read from what was there before it.

        Args:
            read: the data files that it brings, with metrics of `metric_ids`.
        """
        own = _by_path(read)
        hit: dict[str, Entry] = {}
        earlier: dict[str, Entry] = {}
        brought: dict[str, Entry] = {}
        for step in self.steps:
            removed, added = _by_path(step.removed), _by_path(step.added)
            if step.is_rewrite:
                # A rewritten file holds what it was made of.
                for files in (own, brought):
                    files |= added if files.keys() & removed.keys() else {}
                continue
            # A vector comes for a file that has an older one, so that no index holds two commits'.
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
