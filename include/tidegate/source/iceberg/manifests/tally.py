"""Describe what planning skipped, with counts (ICE-1.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

MANIFESTS_PRUNED = "the filter ruled out {} manifests"
FILES_BY_PARTITION = "the filter ruled out {} files by partition"
FILES_BY_METRICS = "the filter ruled out {} files by metrics"
MANIFESTS_SHARED = "{} data manifests of both states were not read: no changed delete reaches them"
DELETES_RULED_OUT = "metrics ruled out {} pairs of data file and equality delete file"
DELETES_DANGLING = "{} delete files address no data file of the table"


def tally_notes(tally: Mapping[str, int]) -> tuple[str, ...]:
    """Return what was skipped, one sentence each; counts of 0 are left out."""
    return tuple(phrase.format(count) for phrase, count in sorted(tally.items()) if count)


def skipped_notes(skipped: Mapping[str, int]) -> tuple[str, ...]:
    """Return which classes of snapshots were skipped, one sentence each (ICE-3.5)."""
    return tuple(
        f"skipped {count} {kind} snapshot{'s' * (count > 1)}"
        for kind, count in sorted(skipped.items())
    )
