"""Find the files of a partition's revisions, of which earlier ones are in `retired/`.

Changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors import RevisionFileGone, RevisionUnknown, StandingFileUnreadable
from tidegate.model.part_format import form_of_name
from tidegate.stage import layout
from tidegate.stage.erased_in import erased_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidegate.ledger import Ledger
    from tidegate.model.erasure import Erasure
    from tidegate.model.ledger_rows import RevisionEntry
    from tidegate.model.partition import Partition
    from tidegate.model.publication import PublishedFile
    from tidegate.pipeline.publish.content import Contents
    from tidegate.pipeline.state.places import Roots
    from tidegate.storage import Storage


@dataclass(frozen=True)
class RevisionFiles:
    """The files of one pipeline's revisions."""

    roots: Roots
    ledger: Ledger
    storage: Storage
    contents: Contents
    erased: Sequence[Erasure] = ()
    """What was erased: a file with such rows, which a table's older states may keep, is gone."""

    def chosen(self, partition: Partition, one: int | None, other: int | None) -> tuple[int, int]:
        """Return the two revisions that are meant; by default the newest and the one before.

        Args:
            partition: the partition.
            one: the number of a revision; 0 for the partition before it was published.
            other: the same; by default the newest.

        Raises:
            RevisionUnknown: there is no such revision.
        """
        known = [item.revision for item in self.ledger.publications.revisions(partition)]
        newest = known[-1] if known else 0
        new = newest if other is None else other
        old = new - 1 if one is None else one
        for wanted in (new, old):
            if wanted not in known and (wanted != 0 or not known):
                said = f"revisions {known[0]} to {newest}" if known else "none: it is not published"
                raise RevisionUnknown(partition=str(partition), revision=max(wanted, 1), known=said)
        return old, new

    def content(self, partition: Partition, revision: int) -> Sequence[PublishedFile]:
        """Return the files of a revision; there are none before the first one."""
        return self._content(self.ledger.publications.revisions(partition), revision)

    def path(self, partition: Partition, revision: int, file: PublishedFile) -> str:
        """Return where a file of a revision is now.

        Raises:
            RevisionFileGone: it was deleted.
        """
        # A commit may move it in between.
        for _ in range(2):
            found = self.found(partition, revision, [file])
            if found:
                return found[file.name]
        revisions = self.ledger.publications.revisions(partition)
        kept = [
            str(item.revision)
            for item in revisions
            if self._is_whole(partition, item.revision, self._content(revisions, item.revision))
        ]
        expected, why = next(
            self._places(partition, file, self._removed_since(partition, revision))
        )
        raise RevisionFileGone(
            path=expected,
            partition=str(partition),
            revision=revision,
            why=why,
            kept=", ".join(kept) or "there are none",
        )

    def _content(
        self, revisions: Sequence[RevisionEntry], revision: int
    ) -> Sequence[PublishedFile]:
        for item in revisions:
            if item.revision == revision:
                return self.contents.commit_plan(item.commit_plan).publication.content
        return ()

    def found(
        self, partition: Partition, revision: int, files: Sequence[PublishedFile]
    ) -> dict[str, str]:
        """Return the name of each of a revision's files and where it is now, unless it is gone."""
        removed = self._removed_since(partition, revision)
        found = {}
        for file in files:
            for path, _ in self._places(partition, file, removed):
                if self.storage.length(path) == file.length and not self._has_erased(path):
                    found[file.name] = path
                    break
        return found

    def _has_erased(self, path: str) -> bool:
        form = form_of_name(path)
        if not self.erased or not form.kind.has_columns:
            return False
        try:
            return erased_in(self.storage, path, form, self.erased) > 0
        except StandingFileUnreadable:
            # Whoever opens it says why, or looks where it is by now.
            return False

    def _is_whole(
        self, partition: Partition, revision: int, content: Sequence[PublishedFile]
    ) -> bool:
        return len(self.found(partition, revision, content)) == len(content)

    def _places(
        self, partition: Partition, file: PublishedFile, removed: Sequence[tuple[int, set[str]]]
    ) -> Iterator[tuple[str, str]]:
        """Yield where a file may be, and why it is not there if it is not.

        Later revisions may bring a file back, and retire it again.
        """
        for number, names in removed:
            if file.name in names:
                path = layout.retired_part(self.roots.work, partition, number, file.name)
                yield path, f"revision {number} replaced it: `tidegate gc` or an erasure deleted it"
        path = f"{self.contents.folder(partition)}/{file.name}"
        yield path, "it is missing in the table, of which `tidegate fsck PIPELINE` tells more"
        # An undo takes files back to where they were staged.
        yield f"{self.roots.work}/{file.staged}", "an undo set it aside"

    def _removed_since(self, partition: Partition, revision: int) -> list[tuple[int, set[str]]]:
        """Return which files each later commit removed, also one that is under way."""
        paths = [
            item.commit_plan
            for item in self.ledger.publications.revisions(partition)
            if item.revision > revision
        ]
        begun = self.ledger.publications.unrecorded(partition)
        if begun is not None and begun.commit_plan is not None:
            paths.append(begun.commit_plan)
        later = [self.contents.commit_plan(path).publication for path in paths]
        return [(it.revision, {item.name for item in it.removes}) for it in later]
