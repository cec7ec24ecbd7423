"""Find a window that neither the work directory nor the source tells any more. Changes nothing."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors import StateFileLost, WorkBehind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tidegate.model.instant import InstantRange
    from tidegate.pipeline.upkeep.lost_announces import LostAnnounces


@dataclass(frozen=True)
class Forgotten:
    """Knows whether a replay or a restoration can still fill up the work directory.

    What a window of plain files read is told by its listings alone. Where they went with all that
    tells what the window brought, as in an old copy of the work directory, other remedies for what
    is lost lead back to each other.
    """

    announces: LostAnnounces
    has_lost: Callable[[InstantRange], bool]
    """Whether the source can never give a window again."""

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Say what alone helps, where a file is missed.

        Raises:
            WorkBehind: a file is lost, and a window can never be told or read again.
            StateFileLost: a file is lost; what it says helps.
        """
        try:
            yield
        except StateFileLost as lost:
            found = self.find()
            if found is None:
                raise
            raise found from lost

    def find(self) -> WorkBehind | None:
        """Return the error for the first such window; None if there is none."""
        for window in self.announces.untold():
            if self.has_lost(window.range):
                return WorkBehind(
                    pipeline=self.announces.ledger.name,
                    work=self.announces.roots.work,
                    window=window.sequence,
                )
        return None
