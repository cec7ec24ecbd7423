"""Choose the name of a window's plan: a plan whose files may be gone is never revived.

Same inputs, same name; but what a replay replaced was retired and may be swept, and its messages
stand on. Where such a plan, or one that lost its staged files, is wanted again, the same inputs get
the next name and everything is staged anew. Touches nothing.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.model.message import CommitMessage
from tidegate.stage import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import PartitionState, WindowState
    from tidegate.model.message import PartFile
    from tidegate.pipeline.work import Roots
    from tidegate.storage import Storage


@dataclass(frozen=True)
class PlanNames:
    """Knows from ledger and work directory which names of a window's plans are used up."""

    roots: Roots
    ledger: Ledger
    storage: Storage

    def choose(self, taken: WindowState, name: Callable[[int], str]) -> str:
        """Give the digest of the plan that a window is staged under.

        Args:
            taken: the window; its effective plan is found done unless files of it were lost.
            name: the digest for the same inputs the first time (0), the second time (1), …

        Returns:
            The same digest for each attempt until it is announced.
        """
        for again in itertools.count():
            digest = name(again)
            if digest == taken.plan_digest:
                if not self._lost(taken, digest):
                    return digest
            elif not self.ledger.windows.was_announced(taken.window.sequence, digest):
                return digest
        raise AssertionError

    def _lost(self, taken: WindowState, digest: str) -> bool:
        """Say whether a file is gone, or cut, that a publication of this plan has yet to move."""
        sequence = taken.window.sequence
        pending = {
            state.partition: state
            for state in self.ledger.partitions.all()
            if state.pending != "none"
        }
        waiting = {
            item.partition
            for item in self.ledger.windows.contributions_of(sequence)
            if item.partition in pending and not self._stands(pending[item.partition], taken)
        }
        if not waiting:
            return False
        uri = layout.plan_root(self.roots.work, sequence, digest)
        parts = [part for part in self._parts(uri) if part.partition in waiting]
        return any(self._is_lost(uri, part) for part in parts)

    def _stands(self, state: PartitionState, taken: WindowState) -> bool:
        revisions = self.ledger.publications.revisions(state.partition)
        stood = revisions[-1].contributions if revisions else {}
        return stood.get(str(taken.window.sequence)) == taken.plan_digest

    def _parts(self, uri: str) -> Iterator[PartFile]:
        root = layout.messages_root(uri)
        for name in self.storage.list_files(root):
            if not name.startswith("."):
                content = self.storage.read_bytes(f"{root}/{name}")
                yield from CommitMessage.from_text(content).parts

    def _is_lost(self, uri: str, part: PartFile) -> bool:
        # A commit that was begun may have moved it.
        places = f"{uri}/{part.staged}", f"{self.roots.partition(part.partition)}/{part.name}"
        return all(self.storage.length(place) != part.length for place in places)
