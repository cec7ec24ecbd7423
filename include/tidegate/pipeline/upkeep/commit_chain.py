"""Find which of a partition's commit plans became revisions, and which one was under way.

A plan is written before its commit begins, which may never happen because the content lapsed or a
person rejected it. The target decides: the current marker, and files that were moved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.commit.publisher import is_marked
from tidegate.model.publication import Publication
from tidegate.target.content import with_content

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.commit.policies import CommitSnapshot
    from tidegate.pipeline.state.places import Roots
    from tidegate.pipeline.state.records import CommitFile
    from tidegate.storage import Storage


@dataclass(frozen=True)
class Chain:
    """The commits of one partition."""

    recorded: tuple[CommitFile, ...]
    """In the order of revisions."""
    unfinished: CommitFile | None
    """The commit that the next publish has to finish."""


def chain_of(
    plans: Sequence[CommitFile],
    roots: Roots,
    storage: Storage,
    table: CommitSnapshot | None = None,
) -> Chain:
    """Derive the commits of one partition from its plans and the target.

    Where all revisions share a directory, the marker is retracted before the first file moves. If
    there is a marker, its revision is the last whose commit began; if there is none, the newest
    plan that moved a file is under way. Where each has its own, the newest marker is that of the
    current revision, and a later one without a marker is under way. The plan of an earlier revision
    is the one with the content that its successor began from. Of a table that was dropped, the
    first revision is under way.

    Args:
        plans: of the partition.
        roots: of the pipeline.
        storage: has the target.
        table: the table by which readers find revisions. A file in its place says nothing there:
            the last revision is the newest whose files the table has, if there is one.
    """
    newest_first = sorted(
        plans,
        key=lambda item: (
            item.plan.publication.revision,
            item.plan.number,
            item.plan.prepared_at,
        ),
        reverse=True,
    )
    shown = None
    if table is not None and plans:
        partition = plans[0].plan.publication.partition
        shown = table.names(plans[0].plan.pipeline, partition, roots.partition(partition))
    looking = _Target(roots, storage, shown)
    standing = next((item for item in newest_first if looking.is_marked(item)), None)
    if standing is None:
        begun = next((item for item in newest_first if looking.has_moved(item)), None)
        before = _before_it(begun, newest_first) if begun else ()
        if begun and looking.lacks_base(begun):
            # The first revision is made again; the next one brings what came since.
            first = next((it for it in before if not looking.lacks_base(it)), None)
            return Chain((), first)
        return Chain(before, begun)
    recorded = (*_before_it(standing, newest_first), standing)
    if roots.layout.is_shared:
        return Chain(recorded, None)
    stands = standing.plan.publication.revision
    later = (item for item in newest_first if item.plan.publication.revision > stands)
    return Chain(recorded, next(filter(looking.has_moved, later), None))


def _before_it(last: CommitFile, newest_first: Sequence[CommitFile]) -> tuple[CommitFile, ...]:
    """Return the commits that a commit began from, oldest first."""
    before: list[CommitFile] = []
    for item in newest_first:
        successor = (before or [last])[-1].plan.publication
        publication = item.plan.publication
        if publication.revision == successor.base_revision and _names(publication) == _before(
            successor
        ):
            before.append(item)
    return tuple(reversed(before))


@dataclass(frozen=True)
class _Target:
    """The files that readers see."""

    roots: Roots
    storage: Storage
    shown: frozenset[str] | None
    """The names of the files that a table has of the partition; None: there is no table, or
    another writer changed it."""

    def is_marked(self, item: CommitFile) -> bool:
        if self.shown is not None:
            return self.shown == _names(item.plan.publication)
        return is_marked(self.storage, self.roots.revision(item.plan.publication), item.plan)

    def lacks_base(self, item: CommitFile) -> bool:
        """Return whether a commit needs files of a partition of which the table has none."""
        return self.shown == frozenset() and bool(_before(item.plan.publication))

    def has_moved(self, item: CommitFile) -> bool:
        publication = item.plan.publication
        if not self.roots.layout.is_shared:
            # Nobody else writes into it.
            return bool(self.storage.list_names(self.roots.revision(publication)))
        came = any(self._stands(item, file.name) for file in publication.adds)
        return came or any(not self._stands(item, file.name) for file in publication.removes)

    def _stands(self, item: CommitFile, name: str) -> bool:
        return self.storage.length(self._path(item, name)) is not None

    def _path(self, item: CommitFile, name: str) -> str:
        return f"{self.roots.revision(item.plan.publication)}/{name}"


def _names(publication: Publication) -> frozenset[str]:
    return frozenset(file.name for file in publication.content)


def _before(publication: Publication) -> frozenset[str]:
    """Return the names of the files that a publication began from."""
    back = with_content(
        Publication(
            partition=publication.partition,
            base_revision=publication.base_revision,
            adds=publication.removes,
            removes=publication.adds,
            content=(),
            contributions=publication.contributions,
        ),
        publication.content,
    )
    return _names(back)
