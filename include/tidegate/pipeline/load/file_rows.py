"""Tell which partitions have rows that were read from source files, by plans and messages.

Reads what earlier windows left in the work directory, and not the source.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors import FormatUnknown, StateFileDamaged, StateFileLost
from tidegate.model.message import CommitMessage
from tidegate.model.plan import WindowKind
from tidegate.pipeline.load.rebuilt_files import RebuiltTimes
from tidegate.pipeline.state.plan_files import read_splits
from tidegate.stage import layout
from tidegate.stage.stored import read_stored

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from tidegate.config import PipelineConfig
    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import WindowState
    from tidegate.model.partition import Partition
    from tidegate.model.plan import Piece
    from tidegate.pipeline.state.places import Roots
    from tidegate.pipeline.state.plan_files import StoredSplits
    from tidegate.storage import Storage

_MOST_SPLITS = 20_000
"""More are not searched for the sake of a message."""


@dataclass(frozen=True)
class FileRows:
    """Finds the partitions of the rows of files that were rewritten or deleted."""

    config: PipelineConfig
    roots: Roots
    ledger: Ledger
    storage: Storage

    def partitions(self, paths: Collection[str]) -> frozenset[Partition] | None:
        """Return the partitions that may have rows of files; None if not known for all.

        They are those of the sub-splits that read them, without those that event times rule out. A
        file that no window in effect read has rows in none.
        """
        found: set[Partition] = set()
        wanted = set(paths)
        try:
            searched = 0
            for state in reversed(self.ledger.windows.all()):
                if not state.sealed or not wanted:
                    continue
                uri = layout.plan_root(
                    self.roots.work, state.window.sequence, str(state.plan_digest)
                )
                splits = read_splits(self.storage, uri)
                searched += len(splits)
                if searched > _MOST_SPLITS:
                    return None
                for message, read in self._messages(uri, splits, frozenset(wanted)):
                    filled = self._filled_by(message, state)
                    found |= {item for item in filled if self._may_have(item, read)}
                    # A path is read by one load, and by any number of rebuilds after it.
                    if state.window.kind is not WindowKind.REBUILD:
                        wanted -= {piece.path for piece in read}
        except (StateFileLost, StateFileDamaged, FormatUnknown):
            return None
        return frozenset(found)

    def _filled_by(self, message: CommitMessage, state: WindowState) -> set[Partition]:
        if message.spread is None:
            return {part.partition for part in message.staged.parts}
        # Its rows were handed on, and stand in files of any other sub-split.
        brought = self.ledger.contributions.of_window(state.window.sequence)
        return {item.partition for item in brought}

    def _may_have(self, partition: Partition, read: Sequence[Piece]) -> bool:
        times = RebuiltTimes.of(self.config, [partition])
        return times is None or any(times.may_have(piece.event_times) for piece in read)

    def _messages(
        self, uri: str, splits: StoredSplits, paths: frozenset[str]
    ) -> Iterator[tuple[CommitMessage, Sequence[Piece]]]:
        """Yield the messages of sub-splits that read some of the files, and what of these."""
        for split in splits:
            for part in split.sub_splits:
                read = [piece for piece in part.pieces if piece.path in paths]
                if read:
                    message = layout.message_file(uri, part.id)
                    yield read_stored(self.storage, message, CommitMessage), read
