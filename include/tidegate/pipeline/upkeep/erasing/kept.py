"""Erase rows of what is kept beside the published files: earlier files, quarantine, late roots."""

from __future__ import annotations

import contextlib
import os
import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors import (
    StandingFileUnreadable,
    StateFileDamaged,
    StateFileLost,
    TidegateError,
)
from tidegate.model.erasure import ErasedFile
from tidegate.model.message import CommitMessage
from tidegate.pipeline.publish.erasing import WITHOUT
from tidegate.pipeline.state.late_root import late_roots_of
from tidegate.pipeline.state.records import Records
from tidegate.pipeline.state.sent import sent_parts
from tidegate.pipeline.upkeep.erasing.waiting import coming
from tidegate.stage import layout
from tidegate.stage.erased_in import erased_in, write_without
from tidegate.stage.stored import read_stored
from tidegate.storage import normal
from tidegate.target.late_root import late_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from tidegate.config import PipelineConfig
    from tidegate.ledger import Ledger
    from tidegate.model.erasure import Erasure
    from tidegate.model.ledger_rows import KnownPartition
    from tidegate.model.publication import PublishedFile
    from tidegate.pipeline.publish.content import Contents
    from tidegate.pipeline.state.places import Roots
    from tidegate.pipeline.upkeep.erasing.at_work import AtWork
    from tidegate.pipeline.upkeep.erasing.staged_forms import StagedForms
    from tidegate.pipeline.upkeep.former_revisions import FormerRevisions
    from tidegate.storage import Storage

_DELETED = "deleted"
_UNREAD = "deleted although it could not be read"
_GIVEN_UP = "sent, but never completed, and given up unread"
_NEW = ".erased"
"""The end of the hidden name under which a file is written that takes the place of another one."""


@dataclass(frozen=True)
class KeptRows:
    """Takes erased rows out of files that no revision needs.

    Runs on: one process. Called: by a person, again until nothing is left.
    Failure: a file is as it was, or without those rows. What lies beside it under a hidden name is
    rubbish; the next call deletes it and goes on.
    """

    config: PipelineConfig
    roots: Roots
    ledger: Ledger
    storage: Storage
    contents: Contents
    forms: StagedForms
    at_work: AtWork
    former: FormerRevisions

    def erase(
        self, named: Sequence[Erasure], left: list[ErasedFile], owner: str, now: datetime
    ) -> Iterator[ErasedFile]:
        """Take erased rows out of everything that is kept, and that no revision needs.

        What other runs are writing is left for now.
        """
        work, newest = self.roots.work, named[-1].number
        # A run that ends while files are listed may have written some that are not in the list.
        ending = [*self.at_work.folders(newest, owner, now, left)]
        names = [
            name
            for name in self.storage.list_files(work)
            if name.split("/")[0] in layout.TREES and (_has_rows(name) or _is_left_over(name))
        ]
        # One that begins meanwhile writes no erased rows, but half of a file of it may be listed.
        # What is needed is known afterwards, too, whatever happens meanwhile.
        busy = [*ending, *self.at_work.folders(newest, owner, now, left)]
        kept, aside = self._kept(left), self._put_aside()
        # What could not be looked through is not to be taken for something that nobody needs.
        places = tuple(f"{path}/" for path in (*busy, *(it.path for it in left)))
        for name in names:
            path = f"{work}/{name}"
            if path.startswith(places) or path in kept:
                continue
            if _is_left_over(name):
                self._delete(path)
            elif path in aside:
                yield from self._written_anew(path, named, left)
            else:
                yield from self._deleted(path, named)
        yield from self._given_up(newest, places)
        for root in self._late_roots():
            for name in late_files(self.storage, root, self.config.name):
                if _is_left_over(name):
                    self._delete(f"{root}/{name}")
                elif _has_rows(name):
                    yield from self._written_anew(f"{root}/{name}", named, left)
        yield from self._of_former(named)

    def _of_former(self, named: Sequence[Erasure]) -> Iterator[ErasedFile]:
        """Remove the directories of former revisions in which there are erased rows."""
        for state in self.ledger.partitions.all():
            for made, _, folder in self.former.of(state.partition):
                names = filter(layout.is_part_file, self.storage.list_names(folder))
                found = [
                    (f"{folder}/{name}", self._rows(f"{folder}/{name}", named)) for name in names
                ]
                if all(rows == 0 for _, rows in found):
                    continue
                self.former.remove(folder)
                for path, rows in found:
                    if rows != 0:
                        done = f"deleted with the directory of revision {made.revision}"
                        yield ErasedFile(path, rows or 0, done)

    def _given_up(self, newest: int, busy: tuple[str, ...]) -> Iterator[ErasedFile]:
        """Give up what was sent, and never completed, of plans that did not leave the rows out.

        Args:
            newest: number of the newest erasure.
            busy: the directories that are to be left alone, each with `/` at its end.
        """
        sent = sent_parts(self.storage, self.roots)
        plans = Records(self.roots, self.storage).plans() if sent else {}
        needed = {
            (file.upload.path, file.upload.id)
            for item in (self.ledger.known_partitions() if sent else ())
            for file in self._later(item)
            if file.upload is not None
        }
        for found in sent:
            digest = layout.digest_of_part(found.path) or ""
            sequence = plans.get(digest)
            if sequence is not None:
                root = layout.plan_root(self.roots.work, sequence, digest)
                if f"{root}/".startswith(busy) or self.contents.leaves_out(
                    sequence, digest, newest
                ):
                    continue
            if (found.path, found.id) not in needed:
                self.storage.give_up(found.path, found.id)
                yield ErasedFile(found.path, 0, _GIVEN_UP)

    def _later(self, item: KnownPartition) -> list[PublishedFile]:
        """Return the files that something has which is published later.

        Those with erased rows have been dealt with.
        """
        later = [*item.begun.publication.adds] if item.begun is not None else []
        for brought in coming(item):
            with contextlib.suppress(StateFileLost, StateFileDamaged):
                later += self.contents.parts_of(brought)
        return later

    def _kept(self, left: Sequence[ErasedFile]) -> set[str]:
        """Return files that must not go, because something that is published later has them."""
        kept = {file.path for file in left}
        for item in self.ledger.known_partitions():
            kept |= {f"{self.roots.work}/{file.staged}" for file in self._later(item)}
            standing = self.contents.standing(item.state.partition)
            for file in standing.content if standing else ():
                kept |= {f"{self.roots.work}/{part.staged}" for part in file.made_of}
        return {normal(path) for path in kept}

    def _late_roots(self) -> list[str]:
        """Return the late roots that the pipeline has, and had when its windows were loaded."""
        windows = [state.window.sequence for state in self.ledger.windows.all()]
        plans = filter(None, map(self.ledger.plans.uri, windows))
        roots = late_roots_of(self.storage, plans)
        late = self.roots.late
        return roots if late is None or late in roots else [late, *roots]

    def _put_aside(self) -> set[str]:
        """Return the quarantined rows of plans in effect, for which people look."""
        found: set[str] = set()
        for state in self.ledger.windows.all():
            if state.plan_digest is None:
                continue
            root = layout.plan_root(self.roots.work, state.window.sequence, state.plan_digest)
            for name in self.storage.list_names(layout.messages_root(root)):
                path = f"{layout.messages_root(root)}/{name}"
                try:
                    staged = read_stored(self.storage, path, CommitMessage).staged
                except (StateFileLost, StateFileDamaged):
                    continue
                found |= {f"{root}/{part.staged}" for part in staged.quarantined}
            late = f"{root}/{layout.LATE_QUARANTINE}"
            found |= {f"{late}/{name}" for name in self.storage.list_files(late)}
        return found

    def _deleted(self, path: str, named: Sequence[Erasure]) -> Iterator[ErasedFile]:
        """Delete a file that nothing needs if it has erased rows, or may have some."""
        rows = self._rows(path, named)
        if rows == 0:
            return
        self._delete(path)
        yield ErasedFile(path, rows or 0, _UNREAD if rows is None else _DELETED)

    def _rows(self, path: str, named: Sequence[Erasure]) -> int | None:
        """Count the erased rows of a file; None if it may have some and cannot be read."""
        form, columns = self.forms.of(path)
        try:
            if columns is not None or form.kind.has_columns:
                return erased_in(self.storage, path, form, named, columns)
        except StandingFileUnreadable:
            # Half a file of a process that died, or one of rows on their way between tasks: what
            # somebody is writing was left alone.
            pass
        return None

    def _delete(self, path: str) -> None:
        self.storage.delete(path)
        # A power cut must not bring it back once the erasure is said to be done.
        self.storage.sync(posixpath.dirname(path))

    def _written_anew(
        self, path: str, named: Sequence[Erasure], left: list[ErasedFile]
    ) -> Iterator[ErasedFile]:
        """Write a file that nobody publishes without erased rows, under its name."""
        form, columns = self.forms.of(path)
        try:
            rows = erased_in(self.storage, path, form, named, columns)
            if not rows:
                return
            folder, name = posixpath.split(path)
            # Another process may be writing the same file anew.
            new = f"{folder}/.{name}.{os.urandom(4).hex()}{_NEW}"
            write_without(self.storage, path, self.storage.open_new(new), form, named, columns)
            self.storage.sync(new)
            # In one step: at no moment has the only copy a name that is taken for rubbish.
            self.storage.replace(new, path)
            self.storage.sync(folder)
        except StandingFileUnreadable as refused:
            done = f"it cannot be read: {refused.problem}. Delete it, or put back a copy of it"
            left.append(ErasedFile(path, 0, done))
            return
        except TidegateError as refused:
            left.append(ErasedFile(path, 0, str(refused)))
            return
        yield ErasedFile(path, rows, WITHOUT)


def _has_rows(name: str) -> bool:
    """Return whether a file has rows: part files and exchanged rows."""
    return layout.is_part_file(name) or name.endswith(".arrow")


def _is_left_over(name: str) -> bool:
    """Return whether a file was being written anew by a process that died."""
    return posixpath.basename(name).startswith(".") and name.endswith(_NEW)
