"""Which files a range of snapshots appended, and which files a snapshot consists of (ICE-3.1–3.7).

Snapshots are classified by what their own manifests hold, not by the name of their operation alone
(ICE-3.2). Delete files are refused, never ignored.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidegate.errors import NonAppendSnapshot, SnapshotClassMismatch, UnsupportedFeature
from tidegate.physical import FORMATS
from tidegate.source.iceberg.history import operation
from tidegate.source.iceberg.manifests import (
    Entry,
    ManifestReader,
    Status,
    has_live_files,
    is_delete_manifest,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table.snapshots import Snapshot

    from tidegate.source.iceberg.pruning import Pruning


@dataclass
class Changes:
    """The data files found, oldest first, and what was passed over."""

    entries: list[Entry] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    """Class of snapshot → how many were passed over."""
    pruned: Counter[str] = field(default_factory=Counter)
    """`manifests` and `files` that the filter ruled out."""

    def notes(self) -> tuple[str, ...]:
        """Say what was passed over, one sentence each (ICE-1.4)."""
        skipped = [
            f"skipped {count} {kind} snapshot{'s' * (count > 1)}"
            for kind, count in sorted(self.skipped.items())
        ]
        pruned = [
            f"the filter ruled out {count} {kind}" for kind, count in sorted(self.pruned.items())
        ]
        return tuple(skipped + pruned)


class ChangeReader:
    """Lists data files from manifests, pruned by the filter."""

    def __init__(self, source: str, manifests: ManifestReader, pruning: Pruning) -> None:
        self._source = source
        self._manifests = manifests
        self._pruning = pruning

    def appended(self, snapshots: Sequence[Snapshot], *, skip_non_append: bool) -> Changes:
        """List the files that append snapshots added, in the order of the snapshots (ICE-3.7).

        Args:
            snapshots: a stretch of the lineage, oldest first.
            skip_non_append: pass over snapshots that delete or overwrite, instead of failing
                (ICE-3.5).

        Raises:
            NonAppendSnapshot: a snapshot is neither append nor replace; names all of them.
            SnapshotClassMismatch: an append removes files or adds deletes (ICE-3.3).
            UnsupportedFeature: a file is encrypted or of an unknown format.
        """
        changes = Changes()
        kinds = [
            (snapshot, operation(snapshot) or self._class_by_content(snapshot))
            for snapshot in snapshots
        ]
        offending = [
            (snapshot, kind) for snapshot, kind in kinds if kind not in {"append", "replace"}
        ]
        if offending and not skip_non_append:
            named = ", ".join(_describe(snapshot, kind) for snapshot, kind in offending)
            raise NonAppendSnapshot(source=self._source, snapshots=named)
        changes.skipped.update(kind for _, kind in kinds if kind != "append")
        for snapshot in (snapshot for snapshot, kind in kinds if kind == "append"):
            self._check_append(snapshot)
            own = [manifest for manifest in self._own(snapshot) if has_live_files(manifest)]
            for entries in self._entries(own, changes):
                self._add(changes, [entry for entry in entries if _is_added_by(entry, snapshot)])
        return changes

    def content(self, snapshot: Snapshot) -> Changes:
        """List the live files of a snapshot by sequence number.

        Raises:
            UnsupportedFeature: delete files apply, or a file is encrypted or of an unknown format.
        """
        changes = Changes()
        manifests = [
            manifest for manifest in self._manifests.manifests(snapshot) if has_live_files(manifest)
        ]
        if any(is_delete_manifest(manifest) for manifest in manifests):
            raise UnsupportedFeature(
                source=self._source,
                feature=f"snapshot {snapshot.snapshot_id}: a table with delete files",
            )
        live = [
            entry
            for entries in self._entries(manifests, changes)
            for entry in entries
            if entry.status != Status.DELETED
        ]
        self._add(changes, sorted(live, key=lambda entry: entry.sequence_number))
        return changes

    def _own(self, snapshot: Snapshot) -> list[ManifestFile]:
        return [
            manifest
            for manifest in self._manifests.manifests(snapshot)
            if manifest.added_snapshot_id == snapshot.snapshot_id
        ]

    def _entries(self, manifests: Sequence[ManifestFile], changes: Changes) -> list[list[Entry]]:
        kept = [manifest for manifest in manifests if self._pruning.keeps_manifest(manifest)]
        if len(kept) < len(manifests):
            changes.pruned["manifests"] += len(manifests) - len(kept)
        return self._manifests.entries(kept, with_metrics=self._pruning.is_active)

    def _add(self, changes: Changes, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if entry.encrypted:
                raise UnsupportedFeature(
                    source=self._source, feature=f"{entry.path}: an encrypted file"
                )
            if entry.file_format not in FORMATS:
                raise UnsupportedFeature(
                    source=self._source,
                    feature=f"{entry.path}: a data file in {entry.file_format.upper()}",
                )
            if self._pruning.keeps_file(entry):
                changes.entries.append(entry)
            else:
                changes.pruned["files"] += 1

    def _check_append(self, snapshot: Snapshot) -> None:
        """Prove by counts, else by entries, that files were only added (ICE-3.3)."""
        own = self._own(snapshot)
        if any(is_delete_manifest(manifest) and has_live_files(manifest) for manifest in own):
            self._mismatch(snapshot, "adds delete files")
        doubtful = [manifest for manifest in own if manifest.deleted_files_count != 0]
        for entries in self._manifests.entries(doubtful):
            removed = [entry for entry in entries if _is_removed_by(entry, snapshot)]
            if removed:
                self._mismatch(
                    snapshot, f"removes {len(removed)} files, among them {removed[0].path}"
                )

    def _mismatch(self, snapshot: Snapshot, found: str) -> None:
        raise SnapshotClassMismatch(
            source=self._source, snapshot=str(snapshot.snapshot_id), found=found
        )

    def _class_by_content(self, snapshot: Snapshot) -> str:
        """Classify a snapshot without an operation (ICE-3.3)."""
        own = self._own(snapshot)
        adds_deletes = any(
            is_delete_manifest(manifest) and has_live_files(manifest) for manifest in own
        )
        data = [manifest for manifest in own if not is_delete_manifest(manifest)]
        entries = [entry for entries in self._manifests.entries(data) for entry in entries]
        removes = adds_deletes or any(_is_removed_by(entry, snapshot) for entry in entries)
        adds = any(_is_added_by(entry, snapshot) for entry in entries)
        if removes:
            return "overwrite" if adds else "delete"
        return "append"


def _is_added_by(entry: Entry, snapshot: Snapshot) -> bool:
    return entry.status == Status.ADDED and entry.snapshot_id == snapshot.snapshot_id


def _is_removed_by(entry: Entry, snapshot: Snapshot) -> bool:
    return entry.status == Status.DELETED and entry.snapshot_id == snapshot.snapshot_id


def _describe(snapshot: Snapshot, kind: str) -> str:
    summary = snapshot.summary.additional_properties if snapshot.summary else {}
    absent = "0" if summary else "?"
    added = summary.get("added-data-files", absent)
    removed = summary.get("deleted-data-files", absent)
    deletes = summary.get("added-delete-files", absent)
    counts = f"{added} files added, {removed} removed, {deletes} delete files"
    return f"{snapshot.snapshot_id} ({kind}: {counts})"
