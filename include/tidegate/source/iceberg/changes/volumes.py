"""The volume of each snapshot, for run limits, and the table's properties for splits.

Volumes are taken from snapshot summaries; manifests are read only if a summary has no counts
(ICE-5.11).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.model.volume import Volume
from tidegate.source.iceberg.manifests.entries import Status
from tidegate.source.iceberg.timeline.history import operation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyiceberg.table.snapshots import Snapshot

    from tidegate.source.iceberg.manifests.decode import ManifestReader

_SPLIT_PROPERTIES = {
    "read.split.target-size": "target_size",
    "read.split.planning-lookback": "lookback",
    "read.split.open-file-cost": "open_cost",
}
_ADDED = ("added-data-files", "added-files-size", "added-records")
_REMOVED = ("deleted-data-files", "removed-files-size", "deleted-records")
# Sizes of delete files are included in the sizes above.
_DELETES = ("added-delete-files", "", "added-position-deletes")
_KEY_DELETES = ("", "", "added-equality-deletes")
_UNREAD = {"replace"}
_NOT_APPENDED = {"replace", "delete", "overwrite"}


def split_defaults(properties: Mapping[str, str]) -> dict[str, int]:
    """Return the valid table properties about splits, as keys of `source.split`."""
    return {
        key: int(properties[name])
        for name, key in _SPLIT_PROPERTIES.items()
        if properties.get(name, "").isdecimal() and int(properties[name])
    }


def volumes(
    snapshots: Iterable[Snapshot], manifests: ManifestReader, *, only_appends: bool
) -> Iterator[Volume]:
    """Yield the volume of each snapshot.

    Args:
        snapshots: a range of the lineage, oldest first; consumed one by one.
        manifests: of the table.
        only_appends: whether removed rows and files are not read, and snapshots that remove some
            are skipped.
    """
    unread = _NOT_APPENDED if only_appends else _UNREAD
    for snapshot in snapshots:
        if operation(snapshot) in unread:
            yield Volume(0, 0, 0)
            continue
        groups = (_ADDED,) if only_appends else (_ADDED, _REMOVED, _DELETES, _KEY_DELETES)
        yield _by_summary(snapshot, groups) or _by_manifests(snapshot, manifests, only_appends)


def _by_summary(snapshot: Snapshot, groups: Iterable[tuple[str, str, str]]) -> Volume | None:
    """Add up counts; None if there are none. A missing one beside others counts as 0."""
    counts = snapshot.summary.additional_properties if snapshot.summary else {}
    if not any(name.startswith(("added-", "deleted-", "total-")) for name in counts):
        return None
    sums = [sum(int(counts.get(group[place], 0)) for group in groups) for place in range(3)]
    return Volume(*sums)


def _by_manifests(snapshot: Snapshot, manifests: ManifestReader, only_appends: bool) -> Volume:
    own = [
        manifest
        for manifest in manifests.manifests(snapshot)
        if manifest.added_snapshot_id == snapshot.snapshot_id
    ]
    wanted = {Status.ADDED} if only_appends else {Status.ADDED, Status.DELETED}
    found = [
        entry
        for entries in manifests.entries(own)
        for entry in entries
        if entry.status in wanted and entry.snapshot_id == snapshot.snapshot_id
    ]
    return Volume(
        files=len(found),
        bytes=sum(entry.size_bytes for entry in found),
        rows=sum(entry.rows for entry in found),
    )
