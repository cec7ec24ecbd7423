"""Read what one commit added and removed from its own manifests (ICE-3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table.snapshots import Snapshot

    from tidegate.source.iceberg.manifests.decode import ManifestReader
    from tidegate.source.iceberg.manifests.entries import Entry, Status


class CommitEntries:
    """Reads the manifests that a commit wrote, and the entries of its own in them."""

    def __init__(self, manifests: ManifestReader) -> None:
        self._manifests = manifests

    def own(self, snapshot: Snapshot) -> list[ManifestFile]:
        """List the manifests that a commit wrote."""
        return [
            manifest
            for manifest in self._manifests.manifests(snapshot)
            if manifest.added_snapshot_id == snapshot.snapshot_id
        ]

    def by(
        self,
        snapshot: Snapshot,
        manifests: Sequence[ManifestFile],
        *wanted: Status,
        metric_ids: Collection[int] = (),
    ) -> list[Entry]:
        """Read the entries of manifests to which a commit itself gave one of some statuses."""
        return [
            entry
            for entries in self._manifests.entries(manifests, metric_ids)
            for entry in entries
            if entry.status in wanted and entry.snapshot_id == snapshot.snapshot_id
        ]
