"""Reconstruct lost announces from ledger, plan and messages. Changes nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidegate.errors import FormatUnknown, StateFileDamaged, StateFileLost
from tidegate.model.message import CommitMessage
from tidegate.pipeline.load.brought import drafted
from tidegate.pipeline.state.plan_files import read_plan, read_splits
from tidegate.pipeline.state.records import Records, SealedFile
from tidegate.pipeline.upkeep.announces import turn_of
from tidegate.stage import layout
from tidegate.stage.stored import damaged, read_stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import PipelineState, WindowState
    from tidegate.model.message import Contribution
    from tidegate.model.partition import Partition
    from tidegate.model.plan import ScanPlan, Window
    from tidegate.model.watermark import WatermarkStep
    from tidegate.pipeline.state.places import Roots
    from tidegate.pipeline.upkeep.announces import Turn
    from tidegate.storage import Storage


@dataclass(frozen=True)
class LostAnnounces:
    """Reconstructs the announces that the ledger in use knows and that have lost their file.

    The source is not asked, because it may have forgotten what the windows read: plan and messages
    have all of it, and the ledger has the time and number of the announce. None of them has the
    watermark that an idle source reached before.
    """

    roots: Roots
    ledger: Ledger
    storage: Storage

    def told(self) -> tuple[SealedFile, ...]:
        """Return every lost announce, except those with an incomplete plan or message."""
        state = self.ledger.pipeline.find()
        return self._told_after(state) if state is not None else ()

    def untold(self) -> Iterator[Window]:
        """Yield the windows whose announce is lost and cannot be reconstructed."""
        told = {item.sealed.window.sequence for item in self.told()}
        for item in self._sealed():
            sequence = item.window.sequence
            if sequence not in told and _is_lost(item, self._standing(sequence)):
                yield item.window

    def _sealed(self) -> list[WindowState]:
        return [item for item in self.ledger.windows.all() if item.sealed]

    def _told_after(self, state: PipelineState) -> tuple[SealedFile, ...]:
        windows = self._sealed()
        standing = {item.window.sequence: self._standing(item.window.sequence) for item in windows}
        first = [item for files in standing.values() for item in (files or ())[:1]]
        told: list[SealedFile] = []
        for item in sorted(windows, key=_turn):
            if _is_lost(item, standing[item.window.sequence]):
                step = _step_before(_turn(item), [*first, *told])
                told += self._told(item, replace(state, watermark_step=step))
        return tuple(told)

    def _standing(self, sequence: int) -> Sequence[SealedFile] | None:
        """Read the files of a window's announces; None if one of them cannot be read."""
        try:
            return Records(self.roots, self.storage).sealed(sequence)
        except (StateFileDamaged, FormatUnknown):
            return None

    def _told(self, item: WindowState, before: PipelineState) -> Iterator[SealedFile]:
        sequence = item.window.sequence
        uri = layout.plan_root(self.roots.work, sequence, str(item.plan_digest))
        known = {each.partition: each for each in self.ledger.contributions.of_window(sequence)}
        try:
            scan = read_plan(self.storage, uri)
            messages = self._messages(scan, uri)
        except (StateFileLost, StateFileDamaged, FormatUnknown):
            return
        number, announced_at = _turn(item)
        # What the source had then is not known by now; a later load finds out whether it is idle.
        sealed = drafted(
            scan, messages, before, announced_at, known=known.keys, is_unread=lambda: True
        )
        # The ledger counts what was announced, whatever happened to the files.
        if _filled(sealed.contributions) == _filled(known.values()):
            yield SealedFile(uri, replace(sealed, number=number))

    def _messages(self, scan: ScanPlan, uri: str) -> list[CommitMessage]:
        """Read the message of each sub-split, in plan order.

        Raises:
            StateFileLost: splits, or a message, are missing.
            StateFileDamaged: one of them was changed since it was written.
        """
        found = [
            read_stored(self.storage, layout.message_file(uri, part.id), CommitMessage)
            for split in read_splits(self.storage, uri)
            for part in split.sub_splits
        ]
        if len(found) != scan.totals.sub_splits:
            told = f"{len(found)} of {scan.totals.sub_splits} sub-splits"
            raise damaged(layout.splits_file(uri), told)
        return found


def _turn(item: WindowState) -> Turn:
    return item.number, item.sealed_at or item.taken_at


def _is_lost(item: WindowState, standing: Sequence[SealedFile] | None) -> bool:
    """Return whether no file has the plan in effect; unknown if one cannot be read."""
    if standing is None:
        return False
    return item.plan_digest not in {file.sealed.plan_digest for file in standing}


def _step_before(turn: Turn, announced: Iterable[SealedFile]) -> WatermarkStep | None:
    """Return the step of the watermark at some turn, from the announces that moved it."""
    moved = [
        item
        for item in announced
        if item.sealed.window.kind.moves_checkpoint and turn_of(item) < turn
    ]
    return max(moved, key=turn_of).sealed.watermark if moved else None


def _filled(items: Iterable[Contribution]) -> dict[Partition, tuple[tuple[str, ...], int, int]]:
    """Return the content of contributions that brought rows, for comparison."""
    return {
        item.partition: (item.messages, item.rows, item.bytes) for item in items if item.messages
    }
