"""Erase rows of what waits to be published: their windows are read again without them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidegate.errors import ApprovedFirst, TidegateError
from tidegate.model.counting import counting, set_aside
from tidegate.model.erasure import ErasedFile
from tidegate.stage import layout
from tidegate.stage.erased_in import erased_in, tells

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from tidegate.ledger import Ledger
    from tidegate.model.erasure import Erasure
    from tidegate.model.ledger_rows import KnownPartition
    from tidegate.model.message import Contribution
    from tidegate.pipeline.publish.committer import Committer
    from tidegate.pipeline.publish.content import Contents
    from tidegate.pipeline.state.places import Roots
    from tidegate.pipeline.upkeep.erasing.staged_forms import StagedForms
    from tidegate.storage import Storage

    ReadAgain = Callable[[int], None]
    """Reads a window again, with the erasures as they are now."""

_READ_AGAIN = "its window was read again without them"


@dataclass(frozen=True)
class WaitingRows:
    """Finds staged files with erased rows that a later revision may have, and makes them needless.

    Runs on: one process. Called: by a person, again until nothing is left.
    Failure: windows that were not read again keep their files.
    """

    roots: Roots
    ledger: Ledger
    storage: Storage
    contents: Contents
    forms: StagedForms
    committer: Committer

    def found(
        self,
        known: Sequence[KnownPartition],
        named: Sequence[Erasure],
        left: list[ErasedFile],
    ) -> Iterator[ErasedFile]:
        """Yield staged files with erased rows that a later revision may have."""
        for item in known:
            for brought in coming(item):
                try:
                    yield from self._staged(brought, named)
                except TidegateError as refused:
                    root = layout.plan_root(self.roots.work, brought.window, brought.plan_digest)
                    left.append(ErasedFile(root, 0, str(refused), str(brought.partition)))

    def lacking(self, item: KnownPartition, erasure: Erasure) -> int:
        """Count the staged files of a partition whose columns do not tell the rows of an erasure.

        Raises:
            StandingFileUnreadable: a file is damaged.
        """
        return sum(
            not tells(self.storage, path, *self.forms.of(path), erasure)
            for brought in coming(item)
            for part in self.contents.parts_of(brought)
            if self.storage.exists(path := f"{self.roots.work}/{part.staged}")
        )

    def _staged(self, brought: Contribution, named: Sequence[Erasure]) -> Iterator[ErasedFile]:
        newest = max((erasure.number for erasure in named), default=0)
        for part in self.contents.parts_of(brought):
            path = f"{self.roots.work}/{part.staged}"
            if part.upload is not None and not self.storage.exists(path):
                # Nobody can read what was only sent (PC-F36).
                cleared = self.contents.leaves_out(part.window, part.plan_digest, newest)
                rows = 0 if cleared else part.rows
            else:
                rows = self._rows(path, named)
            if rows:
                yield ErasedFile(path, rows, _READ_AGAIN, str(brought.partition))

    def _rows(self, path: str, named: Sequence[Erasure]) -> int:
        """Count the erased rows of a staged file; none if it is not there any more."""
        if not self.storage.exists(path):
            return 0
        form, columns = self.forms.of(path)
        return erased_in(self.storage, path, form, named, columns)

    def read_again(
        self,
        named: Sequence[Erasure],
        again: ReadAgain,
        left: list[ErasedFile],
        owner: str,
        now: datetime,
    ) -> Iterator[ErasedFile]:
        """Read windows again whose staged files somebody may still publish."""
        known = self.ledger.known_partitions()
        waiting = tuple(self.found(known, named, left))
        by_window: dict[int, list[ErasedFile]] = {}
        for file in waiting:
            by_window.setdefault(layout.window_of(file.path) or 0, []).append(file)
        for window, files in sorted(by_window.items()):
            try:
                again(window)
            except TidegateError as refused:
                left += [replace(file, done=str(refused)) for file in files]
            else:
                yield from files
        for item in known if by_window else ():
            if any(brought.late for brought in set_aside(item.contributions)):
                try:
                    self.committer.file_late(item.state.partition, owner, now)
                except TidegateError as refused:
                    partition = item.state.partition
                    place = self.roots.partition(partition)
                    left.append(ErasedFile(place, 0, str(refused), str(partition)))

    def approved(
        self,
        known: Sequence[KnownPartition],
        named: Sequence[Erasure],
        left: list[ErasedFile],
    ) -> Iterator[ErasedFile]:
        """Yield files with erased rows of revisions that a person approved, such as an undo.

        They stay, because the next publish commits them as they were shown; unless their windows
        were read again since.
        """
        told = {file.path for file in left}
        for item in known:
            if item.approved is None:
                continue
            partition, publication = str(item.state.partition), item.approved.publication
            first = ApprovedFirst(
                pipeline=self.ledger.name, partition=partition, publication=publication.digest
            )
            for file in publication.adds:
                path = f"{self.roots.work}/{file.staged}"
                try:
                    rows = 0 if path in told else self._rows(path, named)
                except TidegateError as refused:
                    left.append(ErasedFile(path, 0, str(refused), partition))
                else:
                    if rows:
                        yield ErasedFile(path, rows, str(first), partition)


def coming(item: KnownPartition) -> Iterator[Contribution]:
    """Yield what a later revision of a partition may have that the current one has not."""
    stood = item.newest.contributions if item.newest else {}
    for brought in counting(item.contributions):
        if stood.get(str(brought.window)) != brought.plan_digest:
            yield brought
    yield from set_aside(item.contributions)
