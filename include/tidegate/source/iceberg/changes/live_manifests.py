"""The live entries of a snapshot's manifests, checked and pruned, with a cache."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from tidegate.errors import UnsupportedFeature
from tidegate.physical import FORMATS
from tidegate.source.iceberg.deletes.entries import FILE_PATH_ID, FoundDelete, found_delete
from tidegate.source.iceberg.manifests.decode import has_live_files, is_delete_manifest
from tidegate.source.iceberg.manifests.entries import Status
from tidegate.source.iceberg.manifests.tally import MANIFESTS_PRUNED

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Collection, Sequence

    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table.snapshots import Snapshot

    from tidegate.source.iceberg.deletes.rules import DeleteRules
    from tidegate.source.iceberg.manifests.decode import ManifestReader
    from tidegate.source.iceberg.manifests.entries import Entry
    from tidegate.source.iceberg.manifests.pruning import Pruning

_KEPT_ENTRIES = 200_000
"""About 100 MB; a window of many commits reads the same manifests again and again."""


class ListedManifests(NamedTuple):
    """The manifests of a snapshot that may have live files for the filter."""

    rows: tuple[ManifestFile, ...] = ()
    deletes: tuple[ManifestFile, ...] = ()


class LiveManifests:
    """Reads the manifests of one table for one planning."""

    def __init__(
        self,
        manifests: ManifestReader,
        pruning: Pruning,
        rules: DeleteRules,
        metric_ids: Collection[int] = (),
    ) -> None:
        """Prepare.

        Args:
            manifests: of the table.
            pruning: the filter's pruning.
            rules: of the table.
            metric_ids: columns whose metrics every data entry has besides the requested ones.
        """
        self._manifests = manifests
        self._pruning = pruning
        self._rules = rules
        self._metric_ids = frozenset(metric_ids) | pruning.metric_ids
        self._key_ids = frozenset(rules.key_fields) | {FILE_PATH_ID}
        self._deletes: dict[str, list[FoundDelete]] = {}
        """Of manifests that are kept."""
        self._kept: OrderedDict[str, tuple[frozenset[int], list[Entry]]] = OrderedDict()
        self._kept_entries = 0

    @property
    def is_pruned(self) -> bool:
        """Whether a filter may leave files out."""
        return self._pruning.is_active

    def listed(self, snapshot: Snapshot | None, tally: Counter[str]) -> ListedManifests:
        """List a snapshot's manifests, without those that the filter rules out (ICE-4.3)."""
        if snapshot is None:
            return ListedManifests()
        live = [each for each in self._manifests.manifests(snapshot) if has_live_files(each)]
        # A partition that the filter rules out has no rows that its deletes could apply to.
        kept = [each for each in live if self._pruning.keeps_manifest(each)]
        tally[MANIFESTS_PRUNED] += len(live) - len(kept)
        return ListedManifests(
            tuple(each for each in kept if not is_delete_manifest(each)),
            tuple(each for each in kept if is_delete_manifest(each)),
        )

    def deletes(self, manifests: Sequence[ManifestFile]) -> list[FoundDelete]:
        """Read live delete files, without those of partitions that the filter rules out.

        Raises:
            CorruptDeletes, UnsupportedFeature: see `found_delete`.
        """
        all_found: list[FoundDelete] = []
        live = self._live(manifests, self._key_ids)
        for manifest, entries in zip(manifests, live, strict=True):
            path = manifest.manifest_path
            found = self._deletes.get(path)
            if found is None:
                kept = filter(self._pruning.keeps_partition, entries)
                found = [found_delete(entry, self._rules) for entry in kept]
                if path in self._kept:
                    self._deletes[path] = found
            all_found += found
        return all_found

    def rows(
        self, manifests: Sequence[ManifestFile], metric_ids: frozenset[int], tally: Counter[str]
    ) -> list[Entry]:
        """Read live data files, without those that the filter rules out (ICE-5.14).

        Raises:
            UnsupportedFeature: a file is encrypted, or in an unknown format (ICE-1.3).
        """
        found: list[Entry] = []
        # Later deletes will need the same metrics, so that files need not be read again.
        self._metric_ids |= metric_ids
        for entries in self._live(manifests, self._metric_ids):
            for entry in entries:
                check_readable(entry, self._rules.source)
            found += self._pruning.keep(entries, tally)
        return found

    def _live(
        self, manifests: Sequence[ManifestFile], metric_ids: frozenset[int]
    ) -> list[list[Entry]]:
        unread = [each for each in manifests if not self._is_kept(each, metric_ids)]
        for manifest, entries in zip(
            unread, self._manifests.entries(unread, metric_ids), strict=True
        ):
            live = [entry for entry in entries if entry.status != Status.DELETED]
            self._keep(manifest.manifest_path, metric_ids, live)
        found = [self._kept[each.manifest_path][1] for each in manifests]
        self._forget()
        return found

    def _is_kept(self, manifest: ManifestFile, metric_ids: frozenset[int]) -> bool:
        known = self._kept.get(manifest.manifest_path)
        if known is None or not metric_ids <= known[0]:
            return False
        self._kept.move_to_end(manifest.manifest_path)
        return True

    def _keep(self, path: str, metric_ids: frozenset[int], live: list[Entry]) -> None:
        _, before = self._kept.pop(path, (None, ()))
        self._kept[path] = metric_ids, live
        self._kept_entries += len(live) - len(before)

    def _forget(self) -> None:
        while self._kept_entries > _KEPT_ENTRIES and self._kept:
            path, (_, entries) = self._kept.popitem(last=False)
            self._deletes.pop(path, None)
            self._kept_entries -= len(entries)


def check_readable(entry: Entry, source: str) -> None:
    """Refuse a data file that cannot be read.

    Raises:
        UnsupportedFeature: it is encrypted, or in an unknown format (ICE-1.3).
    """
    if entry.encrypted:
        raise UnsupportedFeature(source=source, feature=f"{entry.path}: an encrypted file")
    if entry.file_format not in FORMATS:
        raise UnsupportedFeature(
            source=source, feature=f"{entry.path}: a data file in {entry.file_format.upper()}"
        )
