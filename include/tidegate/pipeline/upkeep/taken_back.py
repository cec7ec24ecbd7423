"""Tell which erasures and undos do not stand any more, because a target is older than they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tidegate.model.partition import Partition
    from tidegate.model.publication import Approval, Publication


@dataclass(frozen=True)
class TakenBack:
    """A revision that erased rows or undid others, and that the target does not have."""

    partition: Partition
    revision: int
    restored: int | None
    """The revision that it went back to; None: it took erased rows out."""


def taken_back(
    made: Iterable[tuple[Publication, Approval | None]], stands: Mapping[str, int]
) -> Iterator[TakenBack]:
    """Yield the newest erasure and the newest undo of each partition that do not stand.

    Args:
        made: the publications that were committed, with what a person said.
        stands: path of a partition → its current revision, which came before those that are told.
            A partition without one has no rows that could be those of an earlier revision.
    """
    later: dict[str, list[tuple[Publication, Approval | None]]] = {}
    for publication, said in made:
        path = publication.partition.path
        if publication.revision > stands.get(path, publication.revision):
            later.setdefault(path, []).append((publication, said))
    for _, found in sorted(later.items()):
        found.sort(key=lambda item: item[0].revision)
        newest, _ = found[-1]
        erased = [it for it, said in found if said is not None and said.erases is not None]
        undone = [it for it, _ in found if _is_undone(it, newest)]
        for last in erased[-1:]:
            yield TakenBack(last.partition, last.revision, None)
        for last in undone[-1:]:
            restored = last.undone.restores if last.undone is not None else None
            yield TakenBack(last.partition, last.revision, restored)


def _is_undone(publication: Publication, newest: Publication) -> bool:
    """Return whether rows that a publication set aside are still out of the newest one."""
    said = publication.undone
    return said is not None and any(
        newest.contributions.get(window) != plan for window, plan in said.set_aside.items()
    )
