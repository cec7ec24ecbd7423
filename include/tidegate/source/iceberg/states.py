"""What a table consists of at a snapshot, and how two snapshots differ (ICE-3.9, 3.10).

Answers in manifest entries and the delete files that apply to each; reads manifests, never a data
or delete file.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from tidegate.source.iceberg.delete_index import DeleteIndex
from tidegate.source.iceberg.live_manifests import LiveManifests
from tidegate.source.iceberg.manifest_reach import Reach
from tidegate.source.iceberg.matching import rival_paths
from tidegate.source.iceberg.pairing import Pairs, only_on_one_side
from tidegate.source.iceberg.tally import DELETES_DANGLING, DELETES_RULED_OUT, MANIFESTS_SHARED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table.snapshots import Snapshot

    from tidegate.source.iceberg.delete_file import DeleteFile
    from tidegate.source.iceberg.delete_rules import DeleteRules
    from tidegate.source.iceberg.entries import Entry
    from tidegate.source.iceberg.manifests import ManifestReader
    from tidegate.source.iceberg.pruning import Pruning


class LiveFile(NamedTuple):
    """A data file of a state."""

    entry: Entry
    deletes: tuple[DeleteFile, ...]
    rivals: tuple[str, ...] = ()
    """Other data files of the state that are the same path but for the scheme (ICE-4.15)."""


class ChangedFile(NamedTuple):
    """A data file whose presence or deletes differ between two states."""

    entry: Entry
    before: tuple[DeleteFile, ...] | None
    """Deletes that apply in the older state; None: the file is not in it."""
    after: tuple[DeleteFile, ...] | None
    rivals: tuple[str, ...] = ()


@dataclass(frozen=True)
class State:
    """The live data files of a snapshot, by sequence number."""

    files: tuple[LiveFile, ...]
    tally: Counter[str] = field(default_factory=Counter)
    """What was pruned or applies to nothing → how often (ICE-1.4)."""


@dataclass(frozen=True)
class Difference:
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
            metric_ids: columns whose metrics entries should carry besides those needed here.
        """
        self._manifests = LiveManifests(
            manifests, pruning, rules.source, rules.key_fields.keys(), metric_ids
        )
        self._rules = rules

    def state(self, snapshot: Snapshot, enough: int | None = None) -> State:
        """List the live data files of a snapshot and the deletes that apply to each.

        Args:
            snapshot: any retained one.
            enough: no more manifests are read than have as many rows, where no filter and no
                delete leaves any out (ICE-5.13).

        Raises:
            CorruptDeletes, AmbiguousPath: see `DeleteIndex`.
            UnsupportedFeature: a file is encrypted, or in an unknown format.
            SourceFileGone, SourceFileDamaged, SourceUnreachable: see `ManifestReader.entries`.
        """
        tally: Counter[str] = Counter()
        listed = self._manifests.listed(snapshot, tally)
        index = DeleteIndex(self._rules, self._manifests.deletes(listed.deletes))
        all_count = not listed.deletes and not self._manifests.is_pruned
        wanted = _first(listed.rows, enough) if enough and all_count else listed.rows
        entries = self._manifests.rows(wanted, index.metric_ids, tally)
        found = _Applying(index, entries)
        files = [found.live(entry) for entry in sorted(entries, key=_age)]
        _count_deletes(tally, (index,), whole=not self._manifests.is_pruned)
        return State(tuple(files), +tally)

    def difference(self, before: Snapshot | None, after: Snapshot) -> Difference:
        """List the data files whose presence or deletes differ between two snapshots.

        Manifests that both have are read only where deletes that came or went can touch their
        files, or where deletes may apply to the files listed (ICE-3.10).

        Args:
            before: any retained snapshot; None: the empty state.
            after: any retained snapshot, not only a child.

        Raises:
            See `state`.
        """
        tally: Counter[str] = Counter()
        old, new = self._manifests.listed(before, tally), self._manifests.listed(after, tally)
        deletes_gone = self._manifests.deletes(_without(old.deletes, new.deletes))
        deletes_come = self._manifests.deletes(_without(new.deletes, old.deletes))
        reach = Reach(self._rules, only_on_one_side(deletes_gone, deletes_come))
        shared = _common(old.rows, new.rows)
        touched = [manifest for manifest in shared if reach.touches(manifest)]
        tally[MANIFESTS_SHARED] += len(shared) - len(touched)
        gone, come = _without(old.rows, new.rows), _without(new.rows, old.rows)
        kept_deletes = self._manifests.deletes(
            _relevant(_common(old.deletes, new.deletes), [*gone, *come, *touched])
        )
        old_index = DeleteIndex(self._rules, chain(kept_deletes, deletes_gone))
        new_index = DeleteIndex(self._rules, chain(kept_deletes, deletes_come))
        metric_ids = old_index.metric_ids | new_index.metric_ids
        kept = self._manifests.rows(touched, metric_ids, tally)
        pairs = Pairs(
            self._manifests.rows(gone, metric_ids, tally),
            self._manifests.rows(come, metric_ids, tally),
            kept,
        )
        files = list(
            _changed(pairs, _Applying(old_index, pairs.old), _Applying(new_index, pairs.new))
        )
        files.sort(key=lambda each: _age(each.entry))
        _count_deletes(tally, (old_index, new_index), whole=False)
        return Difference(tuple(files), +tally)


class _Applying:
    """The deletes of one state's data files; knows which paths only the scheme tells apart."""

    def __init__(self, index: DeleteIndex, entries: Iterable[Entry]) -> None:
        self._index = index
        self._rivals = rival_paths(entry.path for entry in entries) if index.needs_rivals else {}

    def live(self, entry: Entry) -> LiveFile:
        if self._index.is_empty:
            return LiveFile(entry, ())
        return LiveFile(entry, self.deletes(entry), self.rivals(entry))

    def rivals(self, entry: Entry) -> tuple[str, ...]:
        return self._rivals.get(entry.path, ())

    def deletes(self, entry: Entry) -> tuple[DeleteFile, ...]:
        return self._index.applying(entry, self.rivals(entry))


_age = attrgetter("sequence_number")


def _changed(pairs: Pairs, old: _Applying, new: _Applying) -> Iterator[ChangedFile]:
    for entry in pairs.removed:
        yield ChangedFile(entry, old.deletes(entry), None, old.rivals(entry))
    for entry in pairs.added:
        yield ChangedFile(entry, None, new.deletes(entry), new.rivals(entry))
    for entry in pairs.kept:
        before, after = old.deletes(entry), new.deletes(entry)
        if before is not after and {it.key for it in before} != {it.key for it in after}:
            rivals = tuple(sorted({*old.rivals(entry), *new.rivals(entry)}))
            yield ChangedFile(entry, before, after, rivals)


def _without(
    manifests: Iterable[ManifestFile], others: Iterable[ManifestFile]
) -> list[ManifestFile]:
    paths = {manifest.manifest_path for manifest in others}
    return [manifest for manifest in manifests if manifest.manifest_path not in paths]


def _common(
    manifests: Iterable[ManifestFile], others: Iterable[ManifestFile]
) -> list[ManifestFile]:
    paths = {manifest.manifest_path for manifest in others}
    return [manifest for manifest in manifests if manifest.manifest_path in paths]


def _first(manifests: Sequence[ManifestFile], rows: int) -> Sequence[ManifestFile]:
    """Give the oldest manifests that have so many live rows; unknown counts do not count."""
    found = 0
    oldest = sorted(manifests, key=lambda manifest: manifest.min_sequence_number or 0)
    for place, manifest in enumerate(oldest, 1):
        found += (manifest.added_rows_count or 0) + (manifest.existing_rows_count or 0)
        if found >= rows:
            return oldest[:place]
    return manifests


def _relevant(deletes: Iterable[ManifestFile], rows: Sequence[ManifestFile]) -> list[ManifestFile]:
    """Leave out delete manifests that are older than every file of interest."""
    if not rows:
        return []
    oldest = min(manifest.min_sequence_number or 0 for manifest in rows)
    return [manifest for manifest in deletes if (manifest.sequence_number or 0) >= oldest]


def _count_deletes(tally: Counter[str], indexes: Iterable[DeleteIndex], *, whole: bool) -> None:
    for index in indexes:
        tally[DELETES_RULED_OUT] += index.ruled_out
        if whole:
            tally[DELETES_DANGLING] += index.dangling
