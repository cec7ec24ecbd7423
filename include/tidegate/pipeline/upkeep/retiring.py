"""End a pipeline: what it published stays, and the target may get a new owner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.commit.policies import shown_table
from tidegate.errors import (
    CommitUnfinished,
    LedgerBehind,
    LedgerMoved,
    PartitionBusy,
    ResetUnfinished,
    TableBusy,
    TableCatalogSilent,
    TargetGone,
)
from tidegate.ledger.holder import Way
from tidegate.ledger.restoring import fence_off, remove_rows
from tidegate.model.wire import pretty
from tidegate.pipeline.state.again import again_if
from tidegate.pipeline.state.behind import Watch
from tidegate.pipeline.state.left import forget
from tidegate.pipeline.state.moved import follow_move
from tidegate.pipeline.state.work import await_movers, check_not_resetting
from tidegate.stage import layout
from tidegate.target.retired import Retirement, record_retirement, retirement_of

if TYPE_CHECKING:
    from datetime import datetime

    from tidegate.ledger import Ledger
    from tidegate.pipeline.state.places import Roots
    from tidegate.pipeline.upkeep.resetting import Resetter


@dataclass(frozen=True)
class Retirer:
    """Ends one pipeline.

    Runs on: one process; a run that is alive is left to end. Called: by a person.
    Failure: `retire.json` stands in the work directory until the retirement is written into the
    target, before anything is forgotten; everything of the pipeline is refused meanwhile and from
    then on, and the next call finishes.
    """

    resetter: Resetter

    def retire(self, by: str, owner: str, now: datetime) -> None:
        """End the pipeline; rows that are not published are dropped with its work directory.

        Args:
            by: the person who ends it.
            owner: the process that does it.
            now: its clock.

        Raises:
            TargetOwned, WorkUnfit, WorkOwned, LedgerLost: target and work directory are not the
                pipeline's own; nothing was changed.
            LedgerCopied: the ledger is a copy, and names those of the original; nothing was
                changed.
            CommitUnfinished: a commit has begun and not ended; nothing was changed.
            ResetUnfinished: a reset has begun and not ended; nothing was changed.
            TargetGone: partitions were published, and the target has no file; nothing was changed.
            LedgerBehind: the files know more than the ledger; nothing was changed.
            WindowOpen, PartitionBusy: a run is at work (Transient).
        """
        if self.resetter.has_ended():
            forget(self._ledger)
            return
        roots = self.resetter.own_roots()
        if roots is None:
            return
        self._check_target_is_there(roots)
        follow_move(self.resetter.roots, self._ledger, self.resetter.storage)
        way = Way(("retire", self._ledger.name), "goes on", takes_over=False)
        self.resetter.check_idle(owner, now, way)
        again_if(LedgerMoved, lambda: self._retire(by, now))

    @property
    def _ledger(self) -> Ledger:
        return self.resetter.ledger

    def _retire(self, by: str, now: datetime) -> None:
        roots, storage = self.resetter.stood(), self.resetter.storage
        # Stands before commits are looked for: one that begins later sees it.
        begins = layout.retire_file(roots.work)
        storage.write_once(begins, pretty({"format": 1, "pipeline": self._ledger.name}))
        before = fence_off(self._ledger)
        if before is None:
            storage.delete(begins)
            return
        try:
            await_movers(roots, storage)
            # A partition in the middle of a commit would keep files without a marker for ever, and
            # a reset that only this pipeline can finish would refuse its successor. A partition
            # that a restored ledger does not know would be published beside.
            if retirement_of(storage, roots.target, self._ledger.name) is None:
                check_not_resetting(roots, self._ledger.name, storage)
                self._check_nothing_begun()
                Watch(self.resetter.config, roots, self._ledger, storage).check_everything()
            if (table := shown_table(self.resetter.config.target)) is not None:
                table.release(self._ledger.name, is_left=True)
        except (
            *(PartitionBusy, CommitUnfinished, ResetUnfinished, LedgerBehind),
            *(TableBusy, TableCatalogSilent),
        ):
            storage.delete(begins)
            raise
        ended = Retirement(
            pipeline=self._ledger.name,
            ledger=before.state.ledger_id,
            by=by,
            at=now,
            partitions={
                item.partition.path: item.revision
                for item in self._ledger.partitions.all()
                if item.revision > 0
            },
        )
        record_retirement(storage, roots.target, ended, layout.scratch_root(roots.work))
        storage.delete(begins)
        self._leave(roots)
        remove_rows(self._ledger, before)

    def _check_target_is_there(self, roots: Roots) -> None:
        """Check that a target with published partitions is not empty, as without its volume."""
        was_published = any(item.revision for item in self._ledger.partitions.all())
        if was_published and not self.resetter.storage.list_files(roots.target):
            raise TargetGone(pipeline=self._ledger.name, target=roots.target)

    def _check_nothing_begun(self) -> None:
        for state in self._ledger.partitions.all():
            if self._ledger.publications.unrecorded(state.partition) is not None:
                raise CommitUnfinished(pipeline=self._ledger.name, partition=str(state.partition))

    def _leave(self, roots: Roots) -> None:
        """Delete what is staged, and the files that name the owner."""
        self.resetter.drop_work(roots)
        roots.grounds(self.resetter.storage).give_up()
