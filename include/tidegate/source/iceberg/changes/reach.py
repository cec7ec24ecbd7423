"""Find the data manifests that a delete can affect, by manifest lists alone (ICE-3.10)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tidegate.source.iceberg.deletes.entries import EVERYWHERE
from tidegate.source.iceberg.manifests.bounds import UNREADABLE, decode_bounds
from tidegate.source.iceberg.manifests.matching import partition_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyiceberg.manifest import ManifestFile, PartitionFieldSummary
    from pyiceberg.types import PrimitiveType

    from tidegate.source.iceberg.deletes.entries import FoundDelete
    from tidegate.source.iceberg.deletes.rules import DeleteRules


class Reach:
    """The reach of some delete files: everything, or some partitions, up to an age."""

    def __init__(self, rules: DeleteRules, deletes: Iterable[FoundDelete]) -> None:
        self._types = rules.partition_types
        self._youngest_everywhere = -1
        youngest: dict[tuple[Any, ...], int] = defaultdict(lambda: -1)
        values: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        for found in deletes:
            entry = found.entry
            if found.scope is EVERYWHERE:
                self._youngest_everywhere = max(self._youngest_everywhere, entry.sequence_number)
                continue
            key = partition_key(entry.spec_id, entry.partition)
            youngest[key] = max(youngest[key], entry.sequence_number)
            values[key] = entry.partition
        self._by_spec: dict[int, list[tuple[tuple[Any, ...], int]]] = defaultdict(list)
        for key, sequence in youngest.items():
            self._by_spec[key[0]].append((values[key], sequence))

    def touches(self, manifest: ManifestFile) -> bool:
        """Return whether one of the deletes may apply to a file of a data manifest."""
        oldest = manifest.min_sequence_number or 0
        if oldest <= self._youngest_everywhere:
            return True
        spec_id = manifest.partition_spec_id
        types, summaries = self._types.get(spec_id), manifest.partitions
        return any(
            oldest <= sequence and _may_hold(summaries, types, partition)
            for partition, sequence in self._by_spec.get(spec_id, ())
        )


def _may_hold(
    summaries: Sequence[PartitionFieldSummary] | None,
    types: Sequence[PrimitiveType | None] | None,
    partition: Sequence[Any],
) -> bool:
    if not summaries or types is None or not len(summaries) == len(types) == len(partition):
        return True
    return all(
        kind is None or _within(summary, kind, value)
        for summary, kind, value in zip(summaries, types, partition, strict=True)
    )


def _within(summary: PartitionFieldSummary, kind: PrimitiveType, value: Any) -> bool:
    if value is None:
        return bool(summary.contains_null)
    bounds = decode_bounds(kind, summary.lower_bound, summary.upper_bound)
    try:
        return bounds is None or bool(bounds[0] <= value <= bounds[1])
    except UNREADABLE:
        return True
