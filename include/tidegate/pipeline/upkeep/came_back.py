"""Find erased rows that are published again, because a table was put back from before.

Files are looked through only where records show that a revision may be older than an erasure.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors import StandingFileUnreadable
from tidegate.pipeline.state.erasures import erasures, reports
from tidegate.pipeline.state.records import Records

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from tidegate.ledger import Ledger
    from tidegate.model.erasure import ErasedFile, Erasure
    from tidegate.model.partition import Partition
    from tidegate.pipeline.publish.erasing import StandingRows
    from tidegate.pipeline.state.places import Roots
    from tidegate.storage import Storage


@dataclass(frozen=True)
class CameBack:
    """Finds published files with rows that an earlier erasure took out. Changes nothing.

    For one inspection: what is known of erasures is read once.
    """

    roots: Roots
    ledger: Ledger
    storage: Storage
    standing: StandingRows

    def found(self, partition: Partition) -> tuple[ErasedFile, ...]:
        """Return the files of the current revision that have erased rows again.

        Raises:
            StateFileDamaged, StateFileLost: what was erased is not known.
        """
        if not self._named or not self._may_be_older(partition):
            return ()
        try:
            return self.standing.found(partition, self._named)
        except StandingFileUnreadable:
            # The comparison of files tells of it.
            return ()

    def _may_be_older(self, partition: Partition) -> bool:
        """Return whether a commit is known that does not count, or an erasure without its commit.

        The first is left by a target from before it, the second by a work directory that got the
        newer records of erasures back. Either may also be harmless: a commit that lapsed, a reset.
        """
        revisions = self.ledger.publications.revisions(partition)
        known = {entry.commit_plan for entry in revisions}
        if not known.issuperset(Records(self.roots, self.storage).commit_paths(partition)):
            return True
        due = self._reported.get(str(partition))
        if due is None:
            return False
        made = (self.ledger.publications.find(partition, entry.digest) for entry in revisions)
        said = [entry.approval for entry in made if entry is not None and entry.approval]
        return not due.issubset(each.at for each in said if each.erases is not None)

    @functools.cached_property
    def _named(self) -> tuple[Erasure, ...]:
        return erasures(self.storage, self.roots.work)

    @functools.cached_property
    def _reported(self) -> Mapping[str, set[datetime]]:
        """Partition → the times of erasures that took published rows out of it."""
        found: dict[str, set[datetime]] = {}
        for report in reports(self.storage, self.roots.work):
            for file in report.files:
                if file.is_published and file.partition is not None:
                    found.setdefault(file.partition, set()).add(report.at)
        return found
