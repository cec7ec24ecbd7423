"""Look at the files of a revision: where they are, and whether they are as they were sealed.

Changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors import FileLengthWrong, StagedFileMissing
from tidegate.storage import Storage, below, check_sent, has_to_move, waiting_uploads

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tidegate.model.publication import Publication, PublishedFile


@dataclass(frozen=True)
class Places:
    """The directories of one partition, as absolute paths."""

    work: str
    table_root: str
    partition_root: str
    """Where the files of the revision come."""
    lock: str
    scratch: str
    retired: Callable[[str], str]
    """File name → the path that it is moved to when it is removed."""
    former_root: str | None = None
    """The directory of the revision before, which stays as it is, if the revision has one to
    itself; None: the files of `partition_root` are replaced."""


@dataclass(frozen=True)
class Coming:
    """The files that a revision adds and that are not at their targets yet."""

    staged: tuple[PublishedFile, ...]
    """To be moved."""
    sent: tuple[PublishedFile, ...]
    """Whose uploads are to be completed."""


@dataclass(frozen=True)
class CommitFiles:
    """The files of the revisions of one partition, staged, sent and published."""

    storage: Storage
    places: Places

    def staged(self, file: PublishedFile) -> str:
        """Return where a file is staged."""
        return f"{self.places.work}/{file.staged}"

    def target(self, name: str) -> str:
        """Return where a file of the revision comes."""
        return f"{self.places.partition_root}/{name}"

    def stood(self, name: str) -> str:
        """Return where a file of the revision before is."""
        former = self.places.former_root
        return self.target(name) if former is None else f"{former}/{name}"

    def stands(self, file: PublishedFile) -> bool:
        """Return whether a file has come there."""
        return self.storage.length(self.target(file.name)) is not None

    def examine(self, publication: Publication) -> Coming:
        """Check every file of a revision before anything changes (PC-F27).

        Returns:
            The added files that are not at their target yet.

        Raises:
            PathEscapes: the partition's directory leads outside the table (PC-P11).
            StagedFileMissing, FileLengthWrong, FileContentWrong: a file was lost or damaged.
        """
        below(self.places.table_root, publication.partition.path)
        staged = [self.staged(file) for file in publication.adds if file.upload is None]
        stood = [self.stood(file.name) for file in publication.staying]
        targets = [self.target(file.name) for file in publication.content]
        found = {**self.storage.lengths(dict.fromkeys([*staged, *stood, *targets]))}
        for file in publication.staying:
            is_there = found[self.target(file.name)] is not None
            path = self.target(file.name) if is_there else self.stood(file.name)
            self._check(file, path, found[path])
        sent = self._sent(publication, found)
        others = [file for file in publication.adds if self.target(file.name) not in sent]
        return Coming(
            tuple(file for file in others if self._has_to_move(file, found)),
            tuple(file for file in publication.adds if self.target(file.name) in sent),
        )

    def _has_to_move(self, file: PublishedFile, found: Mapping[str, int | None]) -> bool:
        return has_to_move(self.storage, found, file, self.staged(file), self.target(file.name))

    def _sent(self, publication: Publication, found: dict[str, int | None]) -> frozenset[str]:
        """Return the targets whose uploads are to be completed (PC-F36).

        Raises:
            FileContentWrong: another writer has made a file of that name.

        Args:
            publication: the revision.
            found: path → size of the files that were looked at; gets those that are staged although
                they were sent, because a commit was taken back.
        """
        sent = [file for file in publication.adds if file.upload is not None]
        gone = [file for file in sent if found[self.target(file.name)] is None]
        waiting = waiting_uploads(self.storage, [(file, self.target(file.name)) for file in gone])
        found |= dict.fromkeys(map(self.staged, sent))
        for file in sent:
            if found[self.target(file.name)] == file.length:
                check_sent(self.storage, file, self.target(file.name))
        back = [self.staged(file) for file in gone if self.target(file.name) not in waiting]
        found |= self.storage.lengths(back) if back else {}
        return waiting

    def verify(self, files: Sequence[PublishedFile]) -> None:
        """Check that files are at their targets, as long as they were sealed.

        Raises:
            StagedFileMissing, FileLengthWrong: one is not.
        """
        found = self.storage.lengths([self.target(file.name) for file in files])
        for file in files:
            self._check(file, self.target(file.name), found[self.target(file.name)])

    def _check(self, file: PublishedFile, path: str, found: int | None) -> None:
        if found is None:
            staged = self.staged(file)
            raise StagedFileMissing(path=staged, target=path, window=file.window)
        if found != file.length:
            raise FileLengthWrong(path=path, window=file.window, expected=file.length, found=found)
