"""Find a window that is in neither the work directory nor the source. Changes nothing."""

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
    """Finds out whether a replay or a restoration can still complete the work directory.

    What a window of plain files read is only in its listings. If they are lost together with
    everything that describes what the window brought, as in an old copy of the work directory, the
    other remedies for lost files lead back to each other.
    """

    announces: LostAnnounces
    has_lost: Callable[[InstantRange], bool]
    """Returns whether the source can no longer supply a window."""

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Raise the error with the only remedy that works, if a file is missing.

        Raises:
            WorkBehind: a file is lost, and a window can never be reconstructed or read again.
            StateFileLost: a file is lost; the remedy in its message works.
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
