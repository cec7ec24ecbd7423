"""Which files a range of snapshots appended (ICE-3.1–3.8).

Snapshots are classified by what their own manifests hold, not by the name of their operation alone
(ICE-3.2). No delete is applied: rows come as they were committed (ICE-3.8).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidegate.errors import NonAppendSnapshot, SnapshotClassMismatch
from tidegate.source.iceberg.entries import Entry, Status
from tidegate.source.iceberg.history import operation
from tidegate.source.iceberg.live_manifests import check_readable
from tidegate.source.iceberg.manifests import is_delete_manifest
from tidegate.source.iceberg.tally import MANIFESTS_PRUNED

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table.snapshots import Snapshot

    from tidegate.source.iceberg.manifests import ManifestReader
    from tidegate.source.iceberg.pruning import Pruning


@dataclass
class Changes:
    """The data files found, oldest first, and what was passed over."""

    entries: list[Entry] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    """Class of snapshot → how many were passed over."""
    tally: Counter[str] = field(default_factory=Counter)
    """What the filter ruled out; see `tidegate.source.iceberg.tally`."""


class ChangeReader:
    """Lists the data files that append snapshots brought, pruned by the filter."""

    def __init__(
        self,
        source: str,
        manifests: ManifestReader,
        pruning: Pruning,
        metric_ids: Collection[int] = (),
    ) -> None:
        """Prepare; nothing is read.

        Args:
            source: the table, for errors.
            manifests: of the table.
            pruning: by the filter.
            metric_ids: columns whose metrics entries should carry besides those of the filter.
        """
        self._source = source
        self._manifests = manifests
        self._pruning = pruning
        self._metric_ids = pruning.metric_ids.union(metric_ids)

    def appended(
        self, snapshots: Sequence[Snapshot], *, skip_non_append: bool, enough: int | None = None
    ) -> Changes:
        """List the files that append snapshots added, in the order of the snapshots (ICE-3.7).

        Args:
            snapshots: a stretch of the lineage, oldest first.
            skip_non_append: pass over snapshots that delete or overwrite, instead of failing
                (ICE-3.5).
            enough: later snapshots are not listed once the files have as many rows (ICE-5.13).

        Raises:
            NonAppendSnapshot: a snapshot is neither append nor replace; names all of them.
            SnapshotClassMismatch: an append removes files or adds deletes (ICE-3.3).
            UnsupportedFeature: a file is encrypted or in an unknown format.
        """
        changes = Changes()
        kinds = [(snapshot, self.kind(snapshot)) for snapshot in snapshots]
        offending = [
            (snapshot, kind) for snapshot, kind in kinds if kind not in {"append", "replace"}
        ]
        if offending and not skip_non_append:
            named = ", ".join(_describe(snapshot, kind) for snapshot, kind in offending)
            raise NonAppendSnapshot(source=self._source, snapshots=named)
        changes.skipped.update(kind for _, kind in kinds if kind != "append")
        for snapshot in (snapshot for snapshot, kind in kinds if kind == "append"):
            self._add(changes, snapshot)
            if enough and sum(entry.rows for entry in changes.entries) >= enough:
                break
        return changes

    def kind(self, snapshot: Snapshot) -> str:
        """Classify a snapshot by its operation; if it names none, by what it did (ICE-3.3)."""
        return operation(snapshot) or self._kind_by_content(snapshot)

    def _add(self, changes: Changes, snapshot: Snapshot) -> None:
        self._check_append(snapshot)
        own = [
            manifest
            for manifest in self._own(snapshot)
            if manifest.has_added_files() and not is_delete_manifest(manifest)
        ]
        kept = [manifest for manifest in own if self._pruning.keeps_manifest(manifest)]
        changes.tally[MANIFESTS_PRUNED] += len(own) - len(kept)
        for entries in self._manifests.entries(kept, self._metric_ids):
            added = [entry for entry in entries if _is_by(entry, snapshot, Status.ADDED)]
            for entry in added:
                check_readable(entry, self._source)
            changes.entries += self._pruning.keep(added, changes.tally)

    def _own(self, snapshot: Snapshot) -> list[ManifestFile]:
        return [
            manifest
            for manifest in self._manifests.manifests(snapshot)
            if manifest.added_snapshot_id == snapshot.snapshot_id
        ]

    def _check_append(self, snapshot: Snapshot) -> None:
        """Prove by counts, else by entries, that data files were only added (ICE-3.3)."""
        deletes, rows = self._doubtful(snapshot)
        touched = self._by(snapshot, deletes, Status.ADDED, Status.DELETED)
        if touched:
            self._mismatch(snapshot, f"adds delete files, or removes them: {touched[0].path}")
        removed = self._by(snapshot, rows, Status.DELETED)
        if removed:
            self._mismatch(snapshot, f"removes {len(removed)} files, among them {removed[0].path}")

    def _doubtful(self, snapshot: Snapshot) -> tuple[list[ManifestFile], list[ManifestFile]]:
        """List the delete and data manifests whose counts do not say that they only add rows."""
        own = self._own(snapshot)
        # An append that merges manifests writes delete manifests anew, with what they had.
        deletes = [
            manifest
            for manifest in own
            if is_delete_manifest(manifest)
            and (manifest.added_files_count != 0 or manifest.deleted_files_count != 0)
        ]
        rows = [
            manifest
            for manifest in own
            if not is_delete_manifest(manifest) and manifest.deleted_files_count != 0
        ]
        return deletes, rows

    def _by(
        self, snapshot: Snapshot, manifests: Sequence[ManifestFile], *wanted: Status
    ) -> list[Entry]:
        return [
            entry
            for entries in self._manifests.entries(manifests)
            for entry in entries
            if any(_is_by(entry, snapshot, status) for status in wanted)
        ]

    def _mismatch(self, snapshot: Snapshot, found: str) -> None:
        raise SnapshotClassMismatch(
            source=self._source, snapshot=str(snapshot.snapshot_id), found=found
        )

    def _kind_by_content(self, snapshot: Snapshot) -> str:
        deletes, rows = self._doubtful(snapshot)
        removes = self._by(snapshot, deletes, Status.ADDED, Status.DELETED) or self._by(
            snapshot, rows, Status.DELETED
        )
        if not removes:
            return "append"
        data = [manifest for manifest in self._own(snapshot) if not is_delete_manifest(manifest)]
        return "overwrite" if self._by(snapshot, data, Status.ADDED) else "delete"


def _is_by(entry: Entry, snapshot: Snapshot, status: Status) -> bool:
    return entry.status == status and entry.snapshot_id == snapshot.snapshot_id


def _describe(snapshot: Snapshot, kind: str) -> str:
    summary = snapshot.summary.additional_properties if snapshot.summary else {}
    absent = "0" if summary else "?"
    added = summary.get("added-data-files", absent)
    removed = summary.get("deleted-data-files", absent)
    deletes = summary.get("added-delete-files", absent)
    counts = f"{added} files added, {removed} removed, {deletes} delete files"
    return f"{snapshot.snapshot_id} ({kind}: {counts})"
