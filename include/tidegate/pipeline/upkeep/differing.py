"""Compare two revisions of a partition, by the files that only one of them has (PC-F43)."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors import FormatNotCompared
from tidegate.model.part_format import form_of_name
from tidegate.physical.opening import FORMATS, open_rows
from tidegate.target.difference import ComparedFile, Difference

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidegate.model.partition import Partition
    from tidegate.model.publication import PublishedFile
    from tidegate.physical.protocol import PhysicalRows
    from tidegate.pipeline.upkeep.revision_files import RevisionFiles
    from tidegate.storage import Storage


@dataclass(frozen=True)
class RevisionDifference:
    """The difference of two revisions of a partition."""

    partition: Partition
    old: int
    """The number of one revision; 0 for the partition before it was published."""
    new: int
    old_rows: int
    """All rows of the partition in this revision."""
    new_rows: int
    common_files: int
    """Files that both revisions have; they are not read."""
    old_files: int
    """Files that only this revision has."""
    new_files: int
    found: Difference


@dataclass(frozen=True)
class Differ:
    """Compares revisions of one pipeline. Changes nothing."""

    files: RevisionFiles

    def compare(
        self, partition: Partition, one: int | None, other: int | None, keys: Sequence[str] = ()
    ) -> RevisionDifference:
        """Compare two revisions.

        A file that both have is not read, so that a row that is in one of them has no equal there;
        of keys that a table has once, that is never a difference.

        Raises:
            RevisionUnknown: there is no such revision.
            RevisionFileGone: a file of one of them was deleted.
            KeyUnknown: no file has a column of this name.
            ColumnTypesDiffer: a column has two types with no common one.
            FormatNotCompared: its files do not say the types of their columns.
        """
        old, new = self.files.chosen(partition, one, other)
        old_content = self.files.content(partition, old)
        new_content = self.files.content(partition, new)
        common = {_identity(file) for file in old_content} & {
            _identity(file) for file in new_content
        }
        only_old = [file for file in old_content if _identity(file) not in common]
        only_new = [file for file in new_content if _identity(file) not in common]
        return RevisionDifference(
            partition=partition,
            old=old,
            new=new,
            old_rows=sum(file.rows for file in old_content),
            new_rows=sum(file.rows for file in new_content),
            common_files=len(common),
            old_files=len(only_old),
            new_files=len(only_new),
            found=Difference(
                self._compared(partition, old, only_old),
                self._compared(partition, new, only_new),
                self._compared(
                    partition, new, [file for file in new_content if _identity(file) in common]
                ),
                keys,
            ),
        )

    def _compared(
        self, partition: Partition, revision: int, files: Iterable[PublishedFile]
    ) -> list[ComparedFile]:
        return [
            ComparedFile(file.name, functools.partial(self._open, partition, revision, file))
            for file in files
        ]

    def _open(self, partition: Partition, revision: int, file: PublishedFile) -> PhysicalRows:
        """Open a file where it is now."""
        while True:
            path = self.files.path(partition, revision, file)
            try:
                return _opened(self.files.storage, path)
            except FileNotFoundError:
                # A commit moved it in the meantime, or a sweep deleted it.
                continue


def _identity(file: PublishedFile) -> tuple[str, str]:
    return file.name, file.sha256


def _opened(storage: Storage, path: str) -> PhysicalRows:
    file_format = form_of_name(path).name
    if file_format not in FORMATS:
        raise FormatNotCompared(path=path, format=file_format)
    return open_rows(storage.open_input(path), file_format)
