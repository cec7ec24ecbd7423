"""Find and remove the directories that former revisions have in a target, each its own.

Where all revisions of a partition share its directory there are none.
"""

from __future__ import annotations

import itertools
import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.stage import layout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import RevisionEntry
    from tidegate.model.partition import Partition
    from tidegate.pipeline.state.places import Roots
    from tidegate.storage import Storage


@dataclass(frozen=True)
class FormerRevisions:
    """The directories of one pipeline's recorded revisions, but for the current ones.

    Failure: a directory whose removal was interrupted has no marker, and the next call goes on.
    """

    roots: Roots
    ledger: Ledger
    storage: Storage

    def of(self, partition: Partition) -> Iterator[tuple[RevisionEntry, RevisionEntry, str]]:
        """Yield each revision that has a directory, the one that replaced it, and the directory."""
        if self.roots.layout.is_shared:
            return
        # First what stands: a revision that is recorded meanwhile is no former one by then.
        stands = {*self.roots.folders(partition, self.storage)}
        revisions = self.ledger.publications.revisions(partition) if len(stands) > 1 else ()
        for made, following in itertools.pairwise(revisions):
            folder = self.roots.revision(made)
            if folder in stands:
                yield made, following, folder

    def remove(self, folder: str) -> None:
        """Remove a directory, and before anything else, for good, what says that it is whole."""
        if not self.storage.exists(folder):
            return
        for name in self.storage.list_names(folder):
            if not layout.is_part_file(name):
                self.storage.delete(f"{folder}/{name}")
        self.storage.sync(folder)
        self.storage.delete_tree(folder)
        self.storage.sync(posixpath.dirname(folder))
