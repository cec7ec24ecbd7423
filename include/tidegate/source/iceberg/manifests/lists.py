"""Choose manifests by their entries in manifest lists. Reads none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyiceberg.manifest import ManifestFile


def without(
    manifests: Iterable[ManifestFile], others: Iterable[ManifestFile]
) -> list[ManifestFile]:
    """Return the manifests that another list does not have."""
    paths = {manifest.manifest_path for manifest in others}
    return [manifest for manifest in manifests if manifest.manifest_path not in paths]


def common(manifests: Iterable[ManifestFile], others: Iterable[ManifestFile]) -> list[ManifestFile]:
    """Return the manifests that another list also has."""
    paths = {manifest.manifest_path for manifest in others}
    return [manifest for manifest in manifests if manifest.manifest_path in paths]


def first(manifests: Sequence[ManifestFile], rows: int) -> Sequence[ManifestFile]:
    """Return the oldest manifests with a number of live rows; unknown counts are ignored."""
    found = 0
    oldest = sorted(manifests, key=lambda manifest: manifest.min_sequence_number or 0)
    for place, manifest in enumerate(oldest, 1):
        found += (manifest.added_rows_count or 0) + (manifest.existing_rows_count or 0)
        if found >= rows:
            return oldest[:place]
    return manifests


def relevant(deletes: Iterable[ManifestFile], rows: Sequence[ManifestFile]) -> list[ManifestFile]:
    """Leave out delete manifests that are older than every file of interest."""
    if not rows:
        return []
    oldest = min(manifest.min_sequence_number or 0 for manifest in rows)
    return [manifest for manifest in deletes if (manifest.sequence_number or 0) >= oldest]
