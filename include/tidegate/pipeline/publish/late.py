"""Carry out what becomes of late rows: release what is held, file what is published elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors import StagedFileMissing
from tidegate.model.aside import Aside
from tidegate.model.counting import set_aside
from tidegate.model.watermark import Evaluation
from tidegate.pipeline.state.late_root import late_roots_of, own_late_root
from tidegate.stage import layout
from tidegate.storage import below
from tidegate.target.late_root import is_late_root_of

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
        with self.storage.lock(layout.lock_file(self.roots.work, partition), owner):
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
        late = self._below_late_roots(partition, contributions, stood)
        return all(
            self._names(folder) == {file.name for file in files}
            for folder, files in (
                *self._quarantined(contributions, stood),
                *((f"{root}/{partition.path}", files) for root, files in late),
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
        for root, files in self._below_late_roots(partition, contributions, stood):
            if files or self.storage.exists(f"{root}/{partition.path}"):
                own()
                self._put(below(root, partition.path), files)

    def _below_late_roots(
        self,
        partition: Partition,
        contributions: Sequence[Contribution],
        stood: Mapping[str, str],
    ) -> Iterator[tuple[str, Sequence[PublishedFile]]]:
        """Yield each late root, and the partition's files below it.

        The first root has all that is set aside. Those that the pipeline had before keep what they
        have of it.
        """
        roots = [root for root in (self.roots.late,) if root is not None]
        roots += [root for root in self._former_roots(contributions, stood) if root not in roots]
        if not roots:
            return
        wanted = [item for item in set_aside(contributions) if item.aside is Aside.SIDE]
        files = [file for item in wanted for file in self.contents.parts_of(item)]
        for number, root in enumerate(roots):
            kept = self._names(f"{root}/{partition.path}") if number else None
            yield root, [file for file in files if kept is None or file.name in kept]

    def _former_roots(
        self, contributions: Sequence[Contribution], stood: Mapping[str, str]
    ) -> Iterator[str]:
        """Yield the pipeline's own late roots that late rows may have been put into, newest first.

        Of a window whose rows stand, there is nothing to be taken away any more. One that was
        replayed has plans of before.
        """
        windows = sorted(
            item.window
            for item in contributions
            if item.late and stood.get(str(item.window)) != item.plan_digest
        )
        folders = [layout.window_root(self.roots.work, number) for number in reversed(windows)]
        plans = (f"{root}/{name}" for root in folders for name in self.storage.list_names(root))
        for root in late_roots_of(self.storage, plans):
            if is_late_root_of(self.storage, root, self.contents.name):
                yield root

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
