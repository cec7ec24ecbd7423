"""Tell in which directories of a work directory a run writes, or goes on from what it wrote."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors import StateFileDamaged, StateFileLost
from tidegate.errors.commands import command
from tidegate.ledger.holder import Holder
from tidegate.model.erasure import ErasedFile
from tidegate.pipeline.state.plan_files import read_plan
from tidegate.stage import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from tidegate.config import PipelineConfig
    from tidegate.ledger import Ledger
    from tidegate.ledger.holder import Life
    from tidegate.model.ledger_rows import PartitionState, WindowState
    from tidegate.pipeline.state.places import Roots
    from tidegate.storage import Storage


@dataclass(frozen=True)
class AtWork:
    """Tells what other runs hold; half of a file that one of them is writing cannot be read."""

    config: PipelineConfig
    roots: Roots
    ledger: Ledger
    storage: Storage
    life_of: Callable[[str], Life]
    """Returns the state of the run that holds a window or a partition."""

    def folders(
        self, newest: int, owner: str, now: datetime, left: list[ErasedFile]
    ) -> Iterator[str]:
        """Yield the directories that are to be left alone.

        Args:
            newest: number of the newest erasure.
            owner: the run that asks.
            now: its clock.
            left: gets those of them that may have erased rows, with what is to be done first, if
                it does not name them yet.
        """
        holder = Holder(owner, now, self.config.execute.claim_timeout, self.life_of)
        for window in self.ledger.windows.all():
            yield from self._of_window(window, holder, newest, left)
        for item in self.ledger.known_partitions():
            yield from self._of_partition(item.state, holder, left)

    def _of_window(
        self, state: WindowState, holder: Holder, newest: int, left: list[ErasedFile]
    ) -> Iterator[str]:
        """Yield the directory of a window, or of the only plan in it that is worked on.

        An open window is finished by the next load, whichever run left it.
        """
        sequence = state.window.sequence
        root = layout.window_root(self.roots.work, sequence)
        is_free = state.owner is None or self.ledger.windows.is_free(sequence, holder)
        if state.sealed and is_free:
            return
        uri = None if state.sealed else self.ledger.plans.uri(sequence)
        if uri is not None and self._erased(uri) == newest:
            # Earlier plans may have staged what this one leaves out.
            yield layout.plan_root(self.roots.work, sequence, posixpath.basename(uri))
            return
        if is_free:
            load = command("load", self.config.name)
            reason = f"window {sequence} is being loaded; finish it with `{load}`"
        else:
            reason = self._waiting(f"window {sequence}", state.owner)
        if root not in {file.path for file in left}:
            left.append(ErasedFile(root, 0, reason))
        yield root

    def _of_partition(
        self, state: PartitionState, holder: Holder, left: list[ErasedFile]
    ) -> Iterator[str]:
        """Yield the directories in which the holder of a partition makes files, or finds some."""
        partition = state.partition
        if state.owner is None or self.ledger.partitions.is_free(partition, holder):
            return
        root = layout.units_root(self.roots.work, partition)
        if str(partition) not in {file.partition for file in left}:
            reason = self._waiting(str(partition), state.owner)
            left.append(ErasedFile(root, 0, reason, str(partition)))
        yield root
        yield layout.retired_root(self.roots.work, partition)

    def _waiting(self, subject: str, owner: str | None) -> str:
        again = command("erase", self.config.name, "--again")
        return f"run {owner} is at work on {subject}; once it has ended, `{again}` goes on"

    def _erased(self, uri: str) -> int | None:
        """Return the newest erasure whose rows a plan leaves out; None if there is none."""
        try:
            return read_plan(self.storage, uri).erased
        except (StateFileLost, StateFileDamaged):
            return None
