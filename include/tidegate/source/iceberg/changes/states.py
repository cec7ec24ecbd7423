"""List the files of a table at a snapshot, and the difference of two snapshots (ICE-3.9, 3.10).

Returns manifest entries with the delete files that apply to each; reads manifests, never a data or
delete file.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from tidegate.model.file_slice import Delta, DeltaKind
from tidegate.source.iceberg.changes.live_manifests import LiveManifests
from tidegate.source.iceberg.changes.pairing import Pairs, only_on_one_side
from tidegate.source.iceberg.changes.reach import Reach
from tidegate.source.iceberg.deletes.entries import FoundDelete, concerning
from tidegate.source.iceberg.deletes.index import DeleteIndex
from tidegate.source.iceberg.manifests.lists import common, first, relevant, without
from tidegate.source.iceberg.manifests.matching import rival_paths
from tidegate.source.iceberg.manifests.tally import (
    DELETES_DANGLING,
    DELETES_RULED_OUT,
    MANIFESTS_SHARED,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from pyiceberg.table.snapshots import Snapshot

    from tidegate.source.iceberg.deletes.rules import DeleteRules
    from tidegate.source.iceberg.manifests.decode import ManifestReader
    from tidegate.source.iceberg.manifests.entries import Entry
    from tidegate.source.iceberg.manifests.pruning import Pruning


class LiveFile(NamedTuple):
    """A data file of a state."""

    entry: Entry
    deletes: tuple[Delta, ...]
    rivals: tuple[str, ...] = ()
    """Other data files of the state whose paths differ only in the scheme (ICE-4.15)."""


class ChangedFile(NamedTuple):
    """A data file whose presence or deletes differ between two states."""

    entry: Entry
    before: tuple[Delta, ...] | None
    """Deletes that apply in the older state; None: the file is not in it."""
    after: tuple[Delta, ...] | None
    rivals: tuple[str, ...] = ()


@dataclass(frozen=True)
class State:
    """The live data files of a snapshot, by sequence number."""

    files: tuple[LiveFile, ...]
    tally: Counter[str] = field(default_factory=Counter)
    """What was pruned or applies to nothing → its number (ICE-1.4)."""


@dataclass(frozen=True)
class StateDifference:
    """The data files that differ between two states, by sequence number."""

    files: tuple[ChangedFile, ...]
    tally: Counter[str] = field(default_factory=Counter)


class StateReader:
    """Lists data files with their deletes, pruned by the filter; one per planning.

    Several differences in a row read each manifest once.
    """

    def __init__(
        self,
        manifests: ManifestReader,
        pruning: Pruning,
        rules: DeleteRules,
        metric_ids: Collection[int] = (),
    ) -> None:
        """Prepare; nothing is read.

        Args:
            manifests: of the table.
            pruning: by the filter; it rules out data files, and delete files only by partition.
            rules: of the table.
            metric_ids: columns whose metrics entries should have besides those needed here.
        """
        self._manifests = LiveManifests(manifests, pruning, rules, metric_ids)
        self._rules = rules

    def state(self, snapshot: Snapshot, enough: int | None = None) -> State:
        """List the live data files of a snapshot and the deletes that apply to each.

        Args:
            snapshot: any retained one.
            enough: only as many manifests are read as have that many rows, if neither a filter nor
                a delete leaves any out (ICE-5.13).

        Raises:
            CorruptDeletes, AmbiguousPath: see `DeleteIndex`.
            UnsupportedFeature: a file is encrypted, or in an unknown format.
            SourceFileGone, SourceFileDamaged, SourceUnreachable: see `ManifestReader.entries`.
        """
        tally: Counter[str] = Counter()
        listed = self._manifests.listed(snapshot, tally)
        deletes = self._manifests.deletes(listed.deletes)
        index = DeleteIndex(self._rules, deletes)
        all_count = not listed.deletes and not self._manifests.is_pruned
        wanted = first(listed.rows, enough) if enough and all_count else listed.rows
        entries = self._manifests.rows(wanted, _key_ids(deletes), tally)
        found = _Applying(index, self._rivals(deletes, entries))
        files = [found.live(entry) for entry in sorted(entries, key=_age)]
        _count_deletes(tally, (index,), whole=not self._manifests.is_pruned)
        return State(tuple(files), +tally)

    def difference(self, before: Snapshot | None, after: Snapshot) -> StateDifference:
        """List the data files whose presence or deletes differ between two snapshots.

        Manifests that both snapshots have are read only if added or removed deletes can affect
        their files, or if their deletes may apply to the listed files (ICE-3.10).

        Args:
            before: any retained snapshot; None: the empty state.
            after: any retained snapshot, not only a child.

        Raises:
            See `state`.
        """
        tally: Counter[str] = Counter()
        old, new = self._manifests.listed(before, tally), self._manifests.listed(after, tally)
        deletes_removed = self._manifests.deletes(without(old.deletes, new.deletes))
        deletes_added = self._manifests.deletes(without(new.deletes, old.deletes))
        changed = only_on_one_side(deletes_removed, deletes_added)
        reach = Reach(self._rules, chain(*changed))
        shared = common(old.rows, new.rows)
        touched = [manifest for manifest in shared if reach.touches(manifest)]
        tally[MANIFESTS_SHARED] += len(shared) - len(touched)
        removed, added = without(old.rows, new.rows), without(new.rows, old.rows)
        kept_deletes = self._manifests.deletes(
            relevant(common(old.deletes, new.deletes), [*removed, *added, *touched])
        )
        metric_ids = _key_ids(chain(kept_deletes, deletes_removed, deletes_added))
        kept = self._manifests.rows(touched, metric_ids, tally)
        pairs = Pairs(
            self._manifests.rows(removed, metric_ids, tally),
            self._manifests.rows(added, metric_ids, tally),
            kept,
        )
        files = self._changed(
            pairs,
            _Side([*kept_deletes, *deletes_removed], changed[0], pairs.old, pairs.removed),
            _Side([*kept_deletes, *deletes_added], changed[1], pairs.new, pairs.added),
            tally,
        )
        return StateDifference(tuple(sorted(files, key=lambda each: _age(each.entry))), +tally)

    def _changed(
        self, pairs: Pairs, old: _Side, new: _Side, tally: Counter[str]
    ) -> list[ChangedFile]:
        """Compare only the files that added or removed deletes can affect, which are few."""
        changes = [DeleteIndex(self._rules, side.changed) for side in (old, new)]
        rivals = [self._rivals(side.deletes, side.state) for side in (old, new)]
        doubtful = [
            entry
            for entry in pairs.kept
            if any(index.touches(entry) for index in changes)
            or rivals[0].get(entry.path) != rivals[1].get(entry.path)
        ]
        before, after = (
            _Applying(self._index(side, doubtful), found)
            for side, found in zip((old, new), rivals, strict=True)
        )
        files = list(_compared(pairs, doubtful, before, after))
        _count_deletes(tally, (*changes, before.index, after.index), whole=False)
        return files

    def _index(self, side: _Side, doubtful: Sequence[Entry]) -> DeleteIndex:
        asked = [*side.own, *doubtful]
        return DeleteIndex(self._rules, concerning(side.deletes, asked, self._rules))

    def _rivals(
        self, deletes: Iterable[FoundDelete], entries: Iterable[Entry]
    ) -> Mapping[str, tuple[str, ...]]:
        """Find rivals if deletes name files by paths that are only compared in part (ICE-4.15)."""
        if self._rules.exact_paths or all(it.file.kind is DeltaKind.KEYS for it in deletes):
            return {}
        return rival_paths(entry.path for entry in entries)


class _Side(NamedTuple):
    """One state of a difference."""

    deletes: Sequence[FoundDelete]
    changed: Sequence[FoundDelete]
    """The manifests that the other state does not have."""
    state: Sequence[Entry]
    """The data files that were read."""
    own: Sequence[Entry]
    """The data files that the other state does not have."""


class _Applying:
    """The deletes of one state's data files, with paths that differ only in the scheme."""

    def __init__(self, index: DeleteIndex, rivals: Mapping[str, tuple[str, ...]]) -> None:
        self.index = index
        self._rivals = rivals

    def live(self, entry: Entry) -> LiveFile:
        if self.index.is_empty:
            return LiveFile(entry, ())
        return LiveFile(entry, self.deletes(entry), self.rivals(entry))

    def rivals(self, entry: Entry) -> tuple[str, ...]:
        return self._rivals.get(entry.path, ())

    def deletes(self, entry: Entry) -> tuple[Delta, ...]:
        return self.index.applying(entry, self.rivals(entry))


_age = attrgetter("sequence_number")


def _key_ids(deletes: Iterable[FoundDelete]) -> frozenset[int]:
    """Return the columns whose metrics in data files may rule out equality deletes."""
    return frozenset(chain.from_iterable({found.file.field_ids for found in deletes}))


def _compared(
    pairs: Pairs, doubtful: Iterable[Entry], old: _Applying, new: _Applying
) -> Iterator[ChangedFile]:
    for entry in pairs.removed:
        yield ChangedFile(entry, old.deletes(entry), None, old.rivals(entry))
    for entry in pairs.added:
        yield ChangedFile(entry, None, new.deletes(entry), new.rivals(entry))
    for entry in doubtful:
        before, after = old.deletes(entry), new.deletes(entry)
        if before is not after and {it.key for it in before} != {it.key for it in after}:
            rivals = tuple(sorted({*old.rivals(entry), *new.rivals(entry)}))
            yield ChangedFile(entry, before, after, rivals)


def _count_deletes(tally: Counter[str], indexes: Iterable[DeleteIndex], *, whole: bool) -> None:
    for index in indexes:
        tally[DELETES_RULED_OUT] += index.ruled_out
        if whole:
            tally[DELETES_DANGLING] += index.dangling
