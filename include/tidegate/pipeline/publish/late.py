"""Carry out what becomes of late rows: release what is held, file what is published elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors import StagedFileMissing
from tidegate.model.aside import Aside
from tidegate.model.counting import set_aside
from tidegate.model.watermark import Evaluation
from tidegate.pipeline.state.late_root import own_late_root
from tidegate.stage import layout
from tidegate.storage import below

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import Claim, PartitionState
    from tidegate.model.message import Contribution
    from tidegate.model.partition import Partition
    from tidegate.model.publication import PublishedFile
    from tidegate.pipeline.publish.content import Contents
    from tidegate.pipeline.publish.deciding import Decisions
    from tidegate.pipeline.publish.evaluating import Evaluator
    from tidegate.pipeline.state.places import Roots
    from tidegate.storage import Storage


@dataclass(frozen=True)
class LateRows:
    """The late rows of one pipeline's partitions.

    Runs on: one process per partition, under its claim. Called: at least once per publish.
    Failure: a file that is put somewhere keeps its staged name, too. What is there is compared with
    what should be, so that the next call finishes; readers see whole files only.
    """

    roots: Roots
    ledger: Ledger
    storage: Storage
    contents: Contents
    evaluator: Evaluator
    decisions: Decisions

    def release(
        self, state: PartitionState, contributions: Sequence[Contribution], now: datetime
    ) -> bool:
        """Let late rows count that were held, if a threshold is reached; return whether they do.

        Raises:
            NumberPassed: others recorded something newer at each attempt (Transient).
        """
        late = self.evaluator.look_at_held(state, contributions, now)
        if late is None or late.released is None:
            return False
        why = Evaluation(True, None, f"{late.detail} count: {late.released}", now)
        self.decisions.release(state.partition, late.held.windows, why)
        return True

    def file(
        self,
        partition: Partition,
        contributions: Sequence[Contribution],
        stood: Mapping[str, str],
        claim: Claim,
        owner: str,
    ) -> None:
        """Put late rows that do not count where they belong, and take away what is there no more.

        Args:
            partition: the partition.
            contributions: all that its windows brought.
            stood: window → plan digest of what its revision has; a rebuild that is in it has read
                the late rows of the windows before.
            claim: the caller's.
            owner: the run.

        Raises:
            PartitionBusy: another process is moving files of the partition (Transient).
            FenceLost: a successor took over; nothing was changed.
            StagedFileMissing: a file is at neither place.
            LateRootUnfit: the late root is not the pipeline's own.
        """
        if not any(item.late for item in contributions):
            return
        with self.storage.lock(self.roots.places(partition, 0).lock, owner):
            self.ledger.partitions.check_fence(partition, claim)
            LateFiles(self.roots, self.storage, self.contents).put(
                partition, contributions, stood, own=self._own
            )

    def _own(self) -> None:
        own_late_root(self.roots, self.ledger, self.storage)


@dataclass(frozen=True)
class LateFiles:
    """The files of late rows that do not count: in quarantine, or below the late root.

    Failure: see `LateRows`.
    """

    roots: Roots
    storage: Storage
    contents: Contents

    def are_filed(
        self,
        partition: Partition,
        contributions: Sequence[Contribution],
        stood: Mapping[str, str],
    ) -> bool:
        """Return whether `put` has nothing left to do."""
        return all(
            self._names(folder) == {file.name for file in files}
            for folder, files in (
                *self._quarantined(contributions, stood),
                *self._below_late_root(partition, contributions),
            )
        )

    def put(
        self,
        partition: Partition,
        contributions: Sequence[Contribution],
        stood: Mapping[str, str],
        own: Callable[[], None],
    ) -> None:
        """Put files where they belong, and take away what does not belong there any more.

        Args:
            partition: the partition.
            contributions: all that its windows brought.
            stood: window → plan digest of what its revision has.
            own: checks the owner of the late root before anything changes there.
        """
        for folder, files in self._quarantined(contributions, stood):
            self._put(folder, files)
        for folder, files in self._below_late_root(partition, contributions):
            if files or self.storage.exists(folder):
                own()
                below(str(self.roots.late), partition.path)
                self._put(folder, files)

    def _below_late_root(
        self, partition: Partition, contributions: Sequence[Contribution]
    ) -> Iterator[tuple[str, Sequence[PublishedFile]]]:
        if self.roots.late is None:
            return
        wanted = [item for item in set_aside(contributions) if item.aside is Aside.SIDE]
        files = [file for item in wanted for file in self.contents.parts_of(item)]
        yield f"{self.roots.late}/{partition.path}", files

    def _quarantined(
        self, contributions: Sequence[Contribution], stood: Mapping[str, str]
    ) -> Iterator[tuple[str, Sequence[PublishedFile]]]:
        """Yield the folder of each window's late rows in quarantine, and its files (PC-L06).

        Of a window whose rows stand, there is nothing to be taken away any more.
        """
        rejected = {
            item.window for item in set_aside(contributions) if item.aside is Aside.LATE_REJECTED
        }
        for item in contributions:
            if not item.late or stood.get(str(item.window)) == item.plan_digest:
                continue
            root = layout.plan_root(self.roots.work, item.window, item.plan_digest)
            folder = layout.late_quarantine(root, item.partition)
            yield folder, self.contents.parts_of(item) if item.window in rejected else ()

    def _put(self, folder: str, files: Sequence[PublishedFile]) -> None:
        """Make a folder have exactly these files, of those that Tidegate wrote there."""
        standing = self._names(folder)
        missing = [file for file in files if file.name not in standing]
        if missing:
            self.storage.make_dirs(folder)
        for file in missing:
            staged = f"{self.roots.work}/{file.staged}"
            if self.storage.length(staged) != file.length:
                raise StagedFileMissing(
                    path=staged, target=f"{folder}/{file.name}", window=file.window
                )
            self.storage.link_new(staged, f"{folder}/{file.name}")
        gone = standing - {file.name for file in files}
        for name in sorted(gone):
            self.storage.delete(f"{folder}/{name}")
        if missing or gone:
            self.storage.sync(folder)

    def _names(self, folder: str) -> set[str]:
        return set(filter(layout.is_part_file, self.storage.list_names(folder)))
