"""List the data files that only the branches of held partitions have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyiceberg.manifest import ManifestContent

from tidegate.metastore.agreement import place
from tidegate.model.held_branch import HELD

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table import Table


def held_files(table: Table, published: int | None) -> dict[str, frozenset[str]]:
    """Return branch of a held partition → where each file is that the published branch has not.

    Args:
        table: with the branches.
        published: the snapshot at which the published branch stands.
    """
    here, found = _manifests(table, published), {}
    for branch, ref in table.metadata.refs.items():
        if branch.startswith(HELD):
            there = _manifests(table, ref.snapshot_id)
            # Most manifests are those of both, and need not be read.
            found[branch] = _files(table, there - here) - _files(table, here - there)
    return found


def _manifests(table: Table, snapshot: int | None) -> frozenset[ManifestFile]:
    found = None if snapshot is None else table.metadata.snapshot_by_id(snapshot)
    listed = [] if found is None else found.manifests(table.io)
    return frozenset(it for it in listed if it.content == ManifestContent.DATA)


def _files(table: Table, manifests: frozenset[ManifestFile]) -> frozenset[str]:
    return frozenset(
        place(entry.data_file.file_path)
        for manifest in manifests
        for entry in manifest.fetch_manifest_entry(table.io)
    )
