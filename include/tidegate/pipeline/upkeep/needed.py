"""Tell which staged files a partition or a person still needs. Reads no file, changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.model.counting import counting, set_aside

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tidegate.model.ledger_rows import KnownPartition
    from tidegate.model.message import PartFile, Staged
    from tidegate.model.upload import Upload


@dataclass(frozen=True)
class Needs:
    """What the partitions of a pipeline need of staged files, at one moment."""

    counted: Mapping[str, frozenset[int]]
    """Path of each partition that nothing waits for → the windows that its content has."""
    waiting: frozenset[int]
    """Windows with rows that are not published yet, on which somebody may decide."""
    moving: frozenset[str]
    """The staged files of commits that have begun, relative to the work directory."""
    completed: frozenset[Upload]
    """What these commits complete instead."""

    @classmethod
    def of(cls, known: Iterable[KnownPartition]) -> Needs:
        """Collect the needs of all partitions."""
        counted, waiting, moving = {}, set[int](), set[str]()
        completed: set[Upload] = set()
        for item in known:
            counts = counting(item.contributions)
            if item.state.pending == "none":
                # Rows that are set aside count again when somebody says so (PC-L07).
                kept = (*counts, *set_aside(item.contributions))
                counted[item.state.partition.path] = frozenset(found.window for found in kept)
            else:
                stood = item.newest.contributions if item.newest else {}
                waiting |= {
                    found.window
                    for found in counts
                    if stood.get(str(found.window)) != found.plan_digest
                }
            if item.begun is not None:
                adds = item.begun.publication.adds
                moving |= {file.staged for file in adds}
                completed |= {file.upload for file in adds if file.upload is not None}
        return cls(counted, frozenset(waiting), frozenset(moving), frozenset(completed))

    def parts(self, window: int, staged: Staged) -> list[PartFile]:
        """Return the part files of a window that a publication may still move.

        They are not needed once a revision stands that reset what the window brought.
        """
        return [
            part
            for part in staged.parts
            if window in self.counted.get(part.partition.path, {window})
        ]
