"""Decide which changes are merged into which standing files, for a revision of an upsert. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.model.counting import counting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidegate.model.message import Contribution
    from tidegate.model.publication import Publication, PublishedFile


@dataclass(frozen=True)
class Merging:
    """What the next revision of an upsert is made of (design §4a)."""

    standing: tuple[PublishedFile, ...]
    """The files that the changes are applied to; empty: it is made anew."""
    going: tuple[PublishedFile, ...]
    """The files that are replaced in any case."""
    changes: tuple[Contribution, ...]
    """In content order."""


def merging(base: Publication | None, contributions: Sequence[Contribution]) -> Merging | None:
    """Compare the contributions with what was merged into the current revision.

    Only what comes after everything that was merged can be applied to the files that stand.
    Otherwise the partition is made anew from all of its changes: they were staged, and are kept.

    Args:
        base: the current revision; None if there is none.
        contributions: all effective contributions to the partition.

    Returns:
        None if nothing has changed.
    """
    wanted = counting(contributions)
    stood = base.contributions if base else {}
    merged = [item for item in wanted if stood.get(str(item.window)) == item.plan_digest]
    is_as_it_was = not _withdrawn(stood, wanted, contributions)
    if len(merged) == len(wanted) and is_as_it_was:
        return None
    content = base.content if base else ()
    follows = wanted[: len(merged)] == tuple(merged)
    if merged and follows and is_as_it_was:
        return Merging(content, (), wanted[len(merged) :])
    return Merging((), content, wanted)


def _withdrawn(
    stood: Mapping[str, str], wanted: Sequence[Contribution], contributions: Sequence[Contribution]
) -> bool:
    """Return whether something that was merged is no longer as it was, or does not count any more.

    What a window reset that was merged itself had no part in the revision.
    """
    known = {str(item.window) for item in contributions}
    counts = {str(item.window): item.plan_digest for item in wanted}
    first = wanted[0] if wanted and wanted[0].replaces else None
    for window, digest in stood.items():
        if counts.get(window) == digest:
            continue
        is_reset = first is not None and (window in known or int(window) < first.window)
        if window in counts or not is_reset:
            return True
    return False
