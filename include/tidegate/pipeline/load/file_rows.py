"""Tell which partitions have rows that were read from source files, by plans and messages.

Reads what earlier windows left in the work directory, and not the source.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors import FormatUnknown, SourceChanged, StateFileDamaged, StateFileLost
from tidegate.model.message import CommitMessage
from tidegate.model.plan import WindowKind
from tidegate.pipeline.load.rebuilding import rebuild_of
from tidegate.pipeline.state.plan_files import read_splits
from tidegate.stage import layout
from tidegate.stage.stored import read_stored

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from tidegate.ledger import Ledger
    from tidegate.model.partition import Partition
    from tidegate.pipeline.state.places import Roots
    from tidegate.pipeline.state.plan_files import StoredSplits
    from tidegate.storage import Storage

_MOST_SPLITS = 20_000
"""More are not searched for the sake of a message."""
_MOST_NAMED = 50
"""More partitions than these are not typed in one command."""


@dataclass(frozen=True)
class FileRows:
    """Finds the partitions of the rows of files that were rewritten or deleted."""

    roots: Roots
    ledger: Ledger
    storage: Storage

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Add the partitions to the error of changed files, as far as all can be found.

        The rebuild of these partitions takes in all changes at once: what it does not name keeps
        its old rows without a further error.

        Raises:
            SourceChanged: with the command that reads these partitions again.
        """
        try:
            yield
        except SourceChanged as changed:
            paths = (changed.path, *changed.others)
            partitions = self.partitions({f"{changed.source}/{path}" for path in paths})
            if not 0 < len(partitions) <= _MOST_NAMED:
                raise
            again = rebuild_of(self.ledger.name, sorted(partitions, key=lambda item: item.path))
            # A sub-split may have read other files as well, whose rows are in its parts.
            remedy = (
                f"{again}: they may have rows of {_them(changed)}; add the partitions of those "
                f"that {'they have' if changed.others else 'it has'} now, if any"
            )
            raise changed.with_remedy(remedy) from changed

    def partitions(self, paths: Collection[str]) -> frozenset[Partition]:
        """Return the partitions of the sub-splits that read files; empty if not known for all."""
        found: set[Partition] = set()
        wanted = set(paths)
        try:
            for uri, splits, is_rebuild in self._plans():
                for message, read in self._messages(uri, splits, frozenset(wanted)):
                    if message.spread is not None:
                        # Its rows were handed on, and stand in files of other sub-splits.
                        return frozenset()
                    found |= {part.partition for part in message.staged.parts}
                    if not is_rebuild:
                        wanted -= read
                if not wanted:
                    return frozenset(found)
        except (StateFileLost, StateFileDamaged, FormatUnknown):
            pass
        return frozenset()

    def _plans(self) -> Iterator[tuple[str, StoredSplits, bool]]:
        """Yield the plans in effect, newest first, until there are too many splits to search.

        With each come its splits, and whether it is that of a rebuild.

        A path is read by one load, and by any number of rebuilds after it.
        """
        searched = 0
        for state in reversed(self.ledger.windows.all()):
            if state.sealed:
                uri = layout.plan_root(
                    self.roots.work, state.window.sequence, str(state.plan_digest)
                )
                splits = read_splits(self.storage, uri)
                searched += len(splits)
                if searched > _MOST_SPLITS:
                    return
                yield uri, splits, state.window.kind is WindowKind.REBUILD

    def _messages(
        self, uri: str, splits: StoredSplits, paths: frozenset[str]
    ) -> Iterator[tuple[CommitMessage, frozenset[str]]]:
        """Yield the messages of sub-splits that read some of the files, and which ones."""
        for split in splits:
            for part in split.sub_splits:
                read = paths.intersection(piece.path for piece in part.pieces)
                if read:
                    message = layout.message_file(uri, part.id)
                    yield read_stored(self.storage, message, CommitMessage), read


def _them(changed: SourceChanged) -> str:
    return f"these {1 + len(changed.others)} files" if changed.others else "it"
