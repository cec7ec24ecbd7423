"""Fold a partition's contributions into its content, and compare it with the current content.

Pure except for the reader of commit messages that the caller passes in. Append, revision by late
rows, replay and rebuild are all this one difference (design §2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tidegate.model.counting import counting, plans_of
from tidegate.model.message import Contribution
from tidegate.model.publication import Publication, PublishedFile
from tidegate.target.compaction import taken_apart

if TYPE_CHECKING:
    from tidegate.model.partition import Partition

PartsOf = Callable[[Contribution], Sequence[PublishedFile]]
IsLost = Callable[[PublishedFile], bool]


def counted(covered: Collection[str], contributions: Sequence[Contribution]) -> tuple[int, ...]:
    """Return the windows whose rows are in a content that covers these contributions."""
    # What is set aside by now counted then.
    told = [
        replace(item, aside=None, counts_as=None)
        for item in contributions
        if str(item.window) in covered
    ]
    return tuple(item.window for item in counting(told))


def propose(
    partition: Partition,
    base: Publication | None,
    base_revision: int,
    contributions: Sequence[Contribution],
    parts_of: PartsOf,
    is_lost: IsLost,
) -> Publication:
    """Compute the next revision of a partition.

    Args:
        partition: the partition.
        base: the publication of the current revision, with its content; None if there is none.
        base_revision: the current revision, 0 for none.
        contributions: all contributions to the partition; those set aside do not count.
        parts_of: reads the part files of a contribution; called only for contributions that are not
            published yet.
        is_lost: whether a published file is gone from the table or cut; asked only of files that a
            replay wrote again, which take its place then.

    Returns:
        The difference; `is_empty` if the content would not change.
    """
    standing = base.content if base else ()
    stood: Mapping[str, str] = base.contributions if base else {}
    wanted = {str(item.window): item for item in counting(contributions)}
    # Not by the plan of each file: if a replay wrote equal bytes, the older file is kept.
    # What was reset may count again: a window in between was read again, and has no rows by now.
    there = {str(window) for file in standing for window in file.windows}
    settled = {
        window
        for window, item in wanted.items()
        if stood.get(window) == item.plan_digest and (window in there or not item.rows)
    }
    apart, back = taken_apart(standing, settled)
    going = tuple(file for file in standing if not file.made_of and str(file.window) not in settled)
    coming = tuple(
        part for window, item in wanted.items() if window not in settled for part in parts_of(item)
    )
    following = Publication(
        partition=partition,
        base_revision=base_revision,
        adds=(*coming, *back),
        removes=(*going, *apart),
        content=(),
        contributions=plans_of(contributions),
    )
    return difference(following, standing, is_lost)


def difference(
    following: Publication, standing: Sequence[PublishedFile], is_lost: IsLost = lambda _: False
) -> Publication:
    """Reduce what comes and goes to what differs, in order, and fill in the content."""
    adds, removes = _without_equal(following.adds, following.removes, is_lost)
    reduced = replace(following, adds=_ordered(adds), removes=_ordered(removes))
    return with_content(reduced, standing)


def with_content(publication: Publication, standing: Sequence[PublishedFile]) -> Publication:
    """Fill in the partition's content after a publication, given its current content."""
    gone = {file.name for file in publication.removes}
    kept = [file for file in standing if file.name not in gone]
    return replace(publication, content=_ordered([*kept, *publication.adds]))


def _without_equal(
    adds: tuple[PublishedFile, ...], removes: tuple[PublishedFile, ...], is_lost: IsLost
) -> tuple[tuple[PublishedFile, ...], tuple[PublishedFile, ...]]:
    """Keep a file that a replay wrote again byte for byte.

    Only changed content makes a revision.
    """
    coming = Counter(map(_bytes_of, adds))
    again = [file for file in removes if _bytes_of(file) in coming]
    kept = [file for file in again if not is_lost(file)]
    equal = Counter(map(_bytes_of, kept)) & coming
    # A file that is lost goes, even if another one with its bytes stands.
    lost = {file.name for file in again}.difference(file.name for file in kept)
    left = [file for file in removes if file.name not in lost]
    gone = (file for file in removes if file.name in lost)
    return _beyond(adds, equal), (*_beyond(left, equal), *gone)


def _bytes_of(file: PublishedFile) -> tuple[int, str, int]:
    return file.window, file.sha256, file.length


def _beyond(
    files: Sequence[PublishedFile], equal: Mapping[tuple[int, str, int], int]
) -> tuple[PublishedFile, ...]:
    left = Counter(equal)
    kept = []
    for file in files:
        key = _bytes_of(file)
        if left[key] > 0:
            left[key] -= 1
        else:
            kept.append(file)
    return tuple(kept)


def _ordered(files: Sequence[PublishedFile]) -> tuple[PublishedFile, ...]:
    return tuple(sorted(files, key=lambda file: (file.window, file.name)))
