"""Choose the name of a window's plan: a plan whose files may be gone is never revived.

The same inputs have the same name. But the files that a replay replaced were retired and may be
swept, while their messages remain. If such a plan, or one that has lost its staged files, is needed
again, the same inputs get another name and everything is staged again. Changes nothing.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors import StateFileLost
from tidegate.model.message import CommitMessage
from tidegate.model.publication import CommitPlan
from tidegate.pipeline.state.abandoned import is_abandoned
from tidegate.pipeline.state.places import coming_folders
from tidegate.pipeline.state.plan_files import read_splits
from tidegate.stage import layout
from tidegate.stage.stored import read_stored
from tidegate.storage import waiting_uploads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import PartitionState, WindowState
    from tidegate.model.message import Contribution, PartFile
    from tidegate.pipeline.state.places import Roots
    from tidegate.storage import Storage


@dataclass(frozen=True)
class PlanNames:
    """Finds out from ledger and work directory which names of a window's plans are used up."""

    roots: Roots
    ledger: Ledger
    storage: Storage
    defers: bool
    """Whether what was only sent may wait for the commit; else it has to be staged instead."""

    def choose(self, taken: WindowState, name: Callable[[int], str]) -> str:
        """Return the digest of the plan that a window is staged under.

        Args:
            taken: the window; its effective plan is complete unless files of it were lost.
            name: the digest for the same inputs the first time (0), the second time (1), …

        Returns:
            The same digest for each attempt until it is announced.
        """
        for again in itertools.count():
            digest = name(again)
            if digest == taken.plan_digest:
                if not self._lost(taken, digest):
                    return digest
            elif not self._is_used_up(taken.window.sequence, digest):
                return digest
        raise AssertionError

    def hollow(self, uri: str) -> list[str]:
        """Return the messages with lost files, of a plan that was never announced."""
        messages = dict(self._messages(uri))
        found = [
            path
            for path, message in messages.items()
            if any(
                self._is_lost(uri, part)
                for part in (*message.staged.parts, *message.staged.quarantined)
            )
        ]
        wanted = sum(len(split.sub_splits) for split in read_splits(self.storage, uri))
        if found or len(messages) < wanted:
            # What sub-splits handed each other goes once all of them are done.
            found = [*{*found, *self._spent(uri, messages)}]
        return self._with_assembled(uri, messages, found)

    def spent(self, uri: str) -> list[str]:
        """Name the messages of a plan that speak for rows handed on, which are gone by now."""
        messages = dict(self._messages(uri))
        return self._with_assembled(uri, messages, self._spent(uri, messages))

    def is_silent(self, taken: WindowState) -> bool:
        """Return whether a publication of the effective plan still needs a lost message."""
        uri = layout.plan_root(self.roots.work, taken.window.sequence, str(taken.plan_digest))
        return not all(
            self.storage.exists(layout.message_file(uri, sub_split))
            for item in self._waiting(taken)
            for sub_split in item.messages
        )

    def _spent(self, uri: str, messages: Mapping[str, CommitMessage]) -> list[str]:
        return [
            path
            for path, message in messages.items()
            if message.spread is not None
            and self.storage.length(f"{uri}/{message.spread.path}") != message.spread.length
        ]

    def _with_assembled(
        self, uri: str, messages: Mapping[str, CommitMessage], dropped: list[str]
    ) -> list[str]:
        """Add the messages of assembled rows, unless all that hand on rows keep theirs.

        Which rows a sub-split hands on, and which it keeps, may come out otherwise when it is
        staged again: a row must not stand in both, or in neither. A message may be gone already: a
        process may die after it deleted some of them.
        """
        parts = [part for split in read_splits(self.storage, uri) for part in split.sub_splits]
        assembled = {
            layout.message_file(uri, part.id) for part in parts if part.assembly is not None
        }
        givers = {layout.message_file(uri, part.id) for part in parts if part.may_hand_on}
        if givers <= messages.keys() - set(dropped):
            return sorted(dropped)
        return sorted({*dropped, *(assembled & messages.keys())})

    def _is_used_up(self, sequence: int, digest: str) -> bool:
        """Return whether a plan that is not in effect was announced once, or abandoned."""
        uri = layout.plan_root(self.roots.work, sequence, digest)
        return self.ledger.plans.was_announced(sequence, digest) or is_abandoned(self.storage, uri)

    def _lost(self, taken: WindowState, digest: str) -> bool:
        """Return whether a file is gone or cut that a publication of the plan still has to move."""
        if self._lost_in_target(taken, digest):
            return True
        waiting = {item.partition for item in self._waiting(taken)}
        if not waiting:
            return False
        uri = layout.plan_root(self.roots.work, taken.window.sequence, digest)
        parts = [part for part in self._parts(uri) if part.partition in waiting]
        return any(self._is_lost(uri, part) for part in parts)

    def _lost_in_target(self, taken: WindowState, digest: str) -> bool:
        """Return whether a published file of the plan is gone from the table, or was cut."""
        sequence = taken.window.sequence
        for item in self.ledger.contributions.of_window(sequence):
            revisions = self.ledger.publications.revisions(item.partition)
            if not item.rows or not revisions:
                continue
            path = f"{self.roots.work}/{revisions[-1].commit_plan}"
            try:
                publication = read_stored(self.storage, path, CommitPlan).publication
            except StateFileLost:
                # What it told is found again by those who need it.
                continue
            folder = self.roots.revision(publication)
            for file in publication.content:
                is_of_plan = (file.window, file.plan_digest) == (sequence, digest)
                if is_of_plan and self.storage.length(f"{folder}/{file.name}") != file.length:
                    return True
        return False

    def _waiting(self, taken: WindowState) -> list[Contribution]:
        """Return the contributions of a window's effective plan that no revision has yet."""
        pending = {
            state.partition: state
            for state in self.ledger.partitions.all()
            if state.pending != "none"
        }
        return [
            item
            for item in self.ledger.contributions.of_window(taken.window.sequence)
            if item.partition in pending and not self._stands(pending[item.partition], taken)
        ]

    def _stands(self, state: PartitionState, taken: WindowState) -> bool:
        revisions = self.ledger.publications.revisions(state.partition)
        stood = revisions[-1].contributions if revisions else {}
        return stood.get(str(taken.window.sequence)) == taken.plan_digest

    def _parts(self, uri: str) -> Iterator[PartFile]:
        for _path, message in self._messages(uri):
            yield from message.staged.parts

    def _messages(self, uri: str) -> Iterator[tuple[str, CommitMessage]]:
        root = layout.messages_root(uri)
        for name in self.storage.list_files(root):
            if not name.startswith("."):
                path = f"{root}/{name}"
                yield path, read_stored(self.storage, path, CommitMessage)

    def _is_lost(self, uri: str, part: PartFile) -> bool:
        if part.upload is not None and self.defers and self._is_sent(part):
            return False
        # A commit that has begun may have moved it.
        if self.storage.length(f"{uri}/{part.staged}") == part.length:
            return False
        folders = coming_folders(self.roots, self.ledger, self.storage, part.partition)
        return all(self.storage.length(f"{it}/{part.name}") != part.length for it in folders)

    def _is_sent(self, part: PartFile) -> bool:
        target = f"{self.roots.partition(part.partition)}/{part.name}"
        return target in waiting_uploads(self.storage, [(part, target)])
