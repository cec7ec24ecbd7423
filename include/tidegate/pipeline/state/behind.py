"""Notice a ledger that is older than the files, as after a restored backup (design §4).

The content of a file is in the ledger before the file exists: its window with its plan, its
publication, and the number that was reserved for its window or partition. Therefore the files are
read first and the ledger afterwards: if the files know more, they were recorded in another ledger.
Changes nothing.
"""

from __future__ import annotations

import itertools
import posixpath
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tidegate.errors import LedgerBehind, MarkerInvalid, PartitionStands, SourceFileGone
from tidegate.model.revision_folder import partition_of, revision_folders
from tidegate.pipeline.state.records import Records
from tidegate.stage import layout
from tidegate.target.marker import marked_by, read_marker
from tidegate.target.retired import retirements

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from tidegate.config import PipelineConfig
    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import (
        KnownPartition,
        PartitionState,
        PipelineState,
        PublicationEntry,
    )
    from tidegate.model.partition import Partition
    from tidegate.model.publication import CommitPlan, Publication
    from tidegate.pipeline.state.places import Roots
    from tidegate.pipeline.state.records import Announced
    from tidegate.storage import Storage
    from tidegate.target.retired import Retirement


@dataclass(frozen=True)
class Watch:
    """Compares one pipeline's files with its ledger."""

    config: PipelineConfig
    roots: Roots
    ledger: Ledger
    storage: Storage

    def check_newest_window(self) -> PipelineState | None:
        """Compare the newest window that was announced.

        Returns:
            The pipeline as the ledger had it when it was compared; None if it does not know it.
            Decisions based on this state are based on a ledger that is not behind.

        Raises:
            LedgerBehind: the ledger does not know the window.
        """
        newest = self._announced(newest_only=True)
        state = self.ledger.pipeline.find()
        for finding in self._findings(newest, state):
            raise finding
        return state

    def check_all_windows(self) -> None:
        """Compare every announced window, which reads the files of each.

        Raises:
            LedgerBehind: the ledger does not know one of them.
        """
        for finding in self._window_findings():
            raise finding

    def check_windows(self, sequences: Iterable[int]) -> None:
        """Compare the newest announce of each of some windows.

        Raises:
            LedgerBehind: the ledger does not know one of them.
        """
        newest = [found for sequence in sequences for found in self._newest(sequence)]
        for finding in self._findings(newest, self.ledger.pipeline.find()):
            raise finding

    def check_partition(self, partition: Partition) -> KnownPartition | None:
        """Compare everything that a partition is published from, window by window.

        Returns:
            What the ledger knew of it; None if no window ever touched it.

        Raises:
            PartitionStands: a retired pipeline published it.
            LedgerBehind: the marker is of a revision that the ledger neither has nor is committing,
                a window was announced again, or a record has a number that it did not reserve.
        """
        marker, record = self._read(partition)
        known = self.ledger.known_partition(partition)
        state, begun = (known.state, known.begun) if known else (None, None)
        self._compare_marker(partition, marker, _newest_of(state, begun))
        # Windows without rows for it, as far as the ledger knows, are only compared by `findings`.
        windows = {item.window for item in (known.contributions if known else ())}
        newest = [found for sequence in sorted(windows) for found in self._newest(sequence)]
        # Not together with what is known: these files were read since.
        with self.ledger.reading_together():
            pipeline = self.ledger.pipeline.find()
            findings = [self._findings(newest, pipeline)]
            if _is_of_this_ledger(record, pipeline):
                findings.append(self._compare_record(partition, record, state))
            for finding in itertools.chain.from_iterable(findings):
                raise finding
        return known

    def check_everything(self) -> None:
        """Compare every window, and every partition that the ledger or a file names.

        Raises:
            LedgerBehind: the ledger does not know one of them, or not as it is.
        """
        self.check_work()
        known = self._known_partitions()
        for partition in known:
            marker = self.standing_marker(partition)
            self._compare_revision(partition, marker, self._newest_revision(partition))
        self._check_marked({partition.path for partition in known})

    def check_work(self) -> None:
        """Compare every window, and the records of every partition, but no marker.

        Raises:
            LedgerBehind: the ledger does not know one of them.
        """
        self.check_all_windows()
        for partition in self._known_partitions():
            self.check_records(partition)

    def _known_partitions(self) -> set[Partition]:
        """Return the partitions that the ledger or a commit plan names."""
        planned = {item.plan.publication.partition for item in self._records.commits()}
        return planned.union(state.partition for state in self.ledger.partitions.all())

    def check_records(self, partition: Partition) -> None:
        """Compare the commit plans, verdicts and decisions of a partition, by their names.

        Raises:
            LedgerBehind: one has a number that the ledger did not reserve for the partition.
        """
        for finding in self._record_findings(partition):
            raise finding

    def check_pending(self, partitions: Sequence[Partition]) -> None:
        """Compare partitions as `check_partition` does, without asking the ledger for each.

        Raises:
            LedgerBehind: as `check_partition`, for any of them.
        """
        read = [(target, *self._read(target)) for target in partitions]
        known = {item.state.partition: item for item in self.ledger.known_partitions()}
        pipeline = self.ledger.pipeline.find()
        for target, marker, record in read:
            item = known.get(target)
            state, begun = (item.state, item.begun) if item else (None, None)
            self._compare_marker(target, marker, _newest_of(state, begun))
            if _is_of_this_ledger(record, pipeline):
                for finding in self._compare_record(target, record, state):
                    raise finding
        named = (known[target].contributions for target in partitions if target in known)
        self.check_windows(sorted({item.window for found in named for item in found}))

    def _newest_revision(self, partition: Partition) -> int:
        # In this order, so that a commit that is recorded in between is found as a revision.
        begun = self.ledger.publications.unrecorded(partition)
        return _newest_of(self.ledger.partitions.find(partition), begun)

    def _compare_marker(
        self, partition: Partition, marker: dict[str, Any] | None, known: int
    ) -> None:
        if not known:
            self._check_left(partition)
        self._compare_revision(partition, marker, known)

    def _compare_revision(
        self, partition: Partition | str, marker: dict[str, Any] | None, known: int
    ) -> None:
        if marker is not None and marker["revision"] > known:
            raise LedgerBehind(
                pipeline=self.config.name,
                found=f"a marker of revision {marker['revision']} in {partition}",
                known=f"revision {known}" if known else "no revision of it",
            )

    def _check_marked(self, known: Collection[str]) -> None:
        """Check that no marker of the pipeline is in other partitions than those at some paths."""
        target = self.roots.target
        for name in self.storage.list_files(target):
            folder = partition_of(posixpath.dirname(name))
            if folder not in known and marked_by(self.storage, target, name) == self.config.name:
                path = f"{target}/{name}"
                marker = read_marker(path, self.storage.read_bytes(path))
                self._compare_revision(folder, marker, known=0)

    def _check_left(self, partition: Partition) -> None:
        """Check that no retired pipeline left files of a partition that is not published yet."""
        left = self.left_partitions.get(partition.path) or self._left_marker(partition)
        if left is None:
            return
        folder = self.roots.partition(partition)
        # Whatever the layout is by now.
        places = (folder, *revision_folders(self.storage, folder))
        if any(layout.is_part_file(it) for at in places for it in self.storage.list_names(at)):
            raise PartitionStands(
                pipeline=self.config.name, partition=str(partition), owner=left, folder=folder
            )

    def _left_marker(self, partition: Partition) -> str | None:
        """Return the retired pipeline whose marker is in a partition, whatever its record lists."""
        if not self._ended:
            return None
        markers = self._markers(partition, self._records.newest_commit(partition))
        return next((it["pipeline"] for it in markers if self._was_left(it)), None)

    @cached_property
    def left_partitions(self) -> Mapping[str, str]:
        """The paths of partitions that retired pipelines published, each with its pipeline.

        Read once: whoever owns a target was let in after the others had ended.
        """
        return {path: item.pipeline for item in self._ended for path in item.partitions}

    @cached_property
    def _ended(self) -> Sequence[Retirement]:
        return retirements(self.storage, self.roots.target)

    def check_commit(self, publication: Publication, plan: CommitPlan | None = None) -> None:
        """Compare the current marker with a commit that is about to change files.

        Args:
            publication: what is published.
            plan: that of the commit; None: it is read, if it is needed.

        Raises:
            LedgerBehind: it is of a later revision: the commit comes from an older ledger.
        """
        partition = publication.partition
        newest = self._records.newest_commit(partition, known=plan)
        marker = self._standing_marker(partition, newest)
        if marker is not None and marker["revision"] > publication.revision:
            raise LedgerBehind(
                pipeline=self.config.name,
                found=f"a marker of revision {marker['revision']} in {partition}",
                known=f"a commit of revision {publication.revision} under way",
            )

    def standing_marker(self, partition: Partition) -> dict[str, Any] | None:
        """Read the current marker; if there are several, that of the latest revision.

        The marker of a pipeline that was retired says nothing about this one.
        """
        return self._standing_marker(partition, self._records.newest_commit(partition))

    def _read(self, partition: Partition) -> tuple[dict[str, Any] | None, tuple[int, str]]:
        """Read the current marker of a partition, and the greatest number of its records."""
        listed = self._records.of_partition(partition)
        newest = self._records.newest_commit(partition, listed)
        record = self._records.newest_number(partition, listed)
        return self._standing_marker(partition, newest), record

    def _standing_marker(
        self, partition: Partition, newest: CommitPlan | None
    ) -> dict[str, Any] | None:
        own = (it for it in self._markers(partition, newest) if not self._was_left(it))
        if not self.roots.layout.is_shared:
            return next(own, None)
        return max(own, key=lambda marker: marker["revision"], default=None)

    def own_markers(self, partition: Partition) -> list[str]:
        """Return the paths of a partition's markers, but for those of retired pipelines."""
        return [
            path
            for path in self._marker_paths(partition, self._records.newest_commit(partition))
            if (marker := self._marker_at(path)) and not self._was_left(marker)
        ]

    def _marker_paths(self, partition: Partition, newest: CommitPlan | None) -> list[str]:
        """Return where markers of a partition may be, those of the newest revision first."""
        folders, names = self.roots.folders(partition, self.storage), self._marker_names(newest)
        return [f"{folder}/{name}" for folder in folders for name in sorted(names)]

    def _was_left(self, marker: Mapping[str, Any]) -> bool:
        writer = marker["pipeline"]
        return writer != self.config.name and any(item.pipeline == writer for item in self._ended)

    def marker_names(self, partition: Partition) -> set[str]:
        """Return the possible names of a partition's marker, as the files tell them.

        It may have been renamed since the last commit, which the ledger need not know.
        """
        return self._marker_names(self._records.newest_commit(partition))

    def _marker_names(self, plan: CommitPlan | None) -> set[str]:
        names = {self.config.commit.marker.name}
        if plan is not None:
            names |= {plan.marker_name, plan.former_marker or plan.marker_name}
        return names

    def findings(self) -> Iterator[str]:
        """Yield the windows and records that the files have and the ledger does not."""
        yield from map(str, self._window_findings())
        for state in self.ledger.partitions.all():
            yield from map(str, self._record_findings(state.partition))

    def _window_findings(self) -> Iterator[LedgerBehind]:
        newest = self._announced(newest_only=False)
        yield from self._findings(newest, self.ledger.pipeline.find())

    def _record_findings(self, partition: Partition) -> Iterator[LedgerBehind]:
        """Compare the greatest number in the files of a partition."""
        record = self._records.newest_number(partition)
        pipeline = self.ledger.pipeline.find()
        if _is_of_this_ledger(record, pipeline):
            state = self.ledger.partitions.find(partition)
            yield from self._compare_record(partition, record, state)

    def _compare_record(
        self, partition: Partition, record: tuple[int, str], state: PartitionState | None
    ) -> Iterator[LedgerBehind]:
        number, name = record
        reserved = state.reserved if state else 0
        if number > reserved:
            yield LedgerBehind(
                pipeline=self.config.name,
                found=f"{name} with the number {number}",
                known=f"records of {partition} up to number {reserved}"
                if reserved
                else f"no record of {partition}",
            )

    def _announced(self, *, newest_only: bool) -> list[Announced]:
        """Read the newest announce of windows; before the ledger is read."""
        newest: list[Announced] = []
        for sequence in self._records.windows():
            newest += self._newest(sequence)
            if newest and newest_only:
                break
        return newest

    def _newest(self, sequence: int) -> list[Announced]:
        """Read the newest announce of a window, if there was one."""
        found = self._records.newest_announced(sequence)
        return [] if found is None else [found]

    def _findings(
        self, newest: Sequence[Announced], state: PipelineState | None
    ) -> Iterator[LedgerBehind]:
        if state is None:
            return
        for item in newest:
            if not self._is_known(item, state):
                yield LedgerBehind(
                    pipeline=self.config.name,
                    found=f"window {item.sequence} announced with plan {item.plan_digest}",
                    known=state.progress,
                )

    def _is_known(self, item: Announced, state: PipelineState) -> bool:
        # The restoration that raised all fences read every announce that was recorded before. A
        # lower number that is not known was written by a process that had lost its fence.
        if item.number < state.first_fence:
            return True
        window = self.ledger.windows.find(item.sequence)
        if window is None or not self.ledger.plans.is_known(item.sequence, item.plan_digest):
            return False
        # An open window with this plan is about to be announced, or is announced again.
        return not window.sealed or item.number <= max(window.number, window.reserved)

    @cached_property
    def _records(self) -> Records:
        return Records(self.roots, self.storage)

    def _markers(self, partition: Partition, newest: CommitPlan | None) -> Iterator[dict[str, Any]]:
        """Read the markers of a partition, whoever wrote them."""
        found = map(self._marker_at, self._marker_paths(partition, newest))
        return (marker for marker in found if marker is not None)

    def _marker_at(self, path: str) -> dict[str, Any] | None:
        try:
            return read_marker(path, self.storage.read_bytes(path))
        except SourceFileGone:
            return None
        except MarkerInvalid:
            # It names no revision; `fsck` reports it.
            return None


def _newest_of(state: PartitionState | None, begun: PublicationEntry | None) -> int:
    """Return the newest revision that the ledger has of a partition, or is committing."""
    known = state.revision if state else 0
    return known if begun is None else max(known, begun.publication.revision)


def _is_of_this_ledger(record: tuple[int, str], pipeline: PipelineState | None) -> bool:
    """Return whether a record has to be known.

    As in `_is_known`: records with a lower number were read by the restoration.
    """
    return pipeline is not None and record[0] >= pipeline.first_fence
