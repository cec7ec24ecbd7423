"""Carry out a commit plan.

Retract, move, verify, retire, policies, marker last (design §4, commit order).

Decides nothing: which files come and go stands in the plan, and a replay does exactly the same
again.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tidegate.commit.policies import CommitPolicy, PolicyContext
from tidegate.errors import (
    FileLengthWrong,
    PolicyFailed,
    SourceFileGone,
    StagedFileMissing,
    TidegateError,
)
from tidegate.model.publication import CommitPlan, Publication, PublicationState, PublishedFile
from tidegate.storage import Storage, below, has_to_move

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True)
class Places:
    """Where one partition's files stand; absolute paths."""

    work: str
    table_root: str
    partition_root: str
    lock: str
    scratch: str
    retired: Callable[[str], str]
    """File name → where it goes when it is removed."""


class CommitSteps(Protocol):
    """What the publisher tells the ledger.

    Each call fails with `FenceLost` once a successor took over.
    """

    def check_right(self) -> None:
        """Make sure that this process may change the partition: asked once, under the lock."""

    def advance(self, to: PublicationState) -> None:
        """Note how far the commit has come."""


@dataclass(frozen=True)
class Publisher:
    """Carries out the commit plan of one partition.

    Runs on: one process per partition, under the partition's lock. Called: at least once per
    revision,
    by whoever finds the publication unrecorded.
    Failure: before the lock nothing has changed. After it a crash leaves files that no marker
    names; the
    next attempt replays the same plan and ends with the same bytes.
    """

    storage: Storage
    places: Places
    policies: Sequence[tuple[str, CommitPolicy]]

    def carry_out(self, plan: CommitPlan, owner: str, steps: CommitSteps) -> None:
        """Make the plan's revision stand, from whatever a predecessor left.

        Raises:
            PartitionBusy: another process is moving the partition's files (Transient).
            LedgerBehind: a later revision stands; nothing was changed.
            FenceLost: a successor took over; nothing was changed.
            StagedFileMissing, FileLengthWrong, FileContentWrong: a sealed file was lost or damaged
                (PC-F21–F26); nothing was changed.
            PolicyFailed: a policy did not succeed (Transient); the files stand without a marker.
        """
        with self.storage.lock(self.places.lock, owner):
            # A process that slept here while its successor finished must not touch a file.
            steps.check_right()
            unfinished = self.examine(plan.publication)
            self._retract([plan.marker_name, plan.former_marker])
            self._move(plan.publication.adds, unfinished)
            self._verify(plan.publication.content)
            self._retire(plan.publication.removes)
            steps.advance(PublicationState.MOVED)
            self._run_policies(plan)
            steps.advance(PublicationState.MARKED)

    def take_back(self, plan: CommitPlan, owner: str, steps: CommitSteps) -> None:
        """Undo what a commit changed that cannot be finished: what stood before stands again.

        Without a marker, if it was retracted, and without files that were lost since they were
        retired: the next commit that needs one names it. Files that came are staged again: they may
        be of windows that still count. May be repeated, from wherever it died.

        Raises:
            PartitionBusy: another process is moving the partition's files (Transient).
            FenceLost: a successor took over; nothing was changed.
        """
        with self.storage.lock(self.places.lock, owner):
            steps.check_right()
            publication = plan.publication
            came = [file for file in publication.adds if self._stands(file)]
            gone = [file for file in publication.removes if not self._stands(file)]
            if came or gone or is_marked(self.storage, self.places.partition_root, plan):
                self._retract([plan.marker_name, plan.former_marker])
            for file in came:
                self._link_synced(self._target(file.name), f"{self.places.work}/{file.staged}")
            for file in gone:
                retired = self.places.retired(file.name)
                if self.storage.length(retired) is not None:
                    self._link_synced(retired, self._target(file.name))
            for file in came:
                self.storage.delete(self._target(file.name))
            # Also where nothing was left to do: whoever did it may have died before this.
            if self.storage.exists(self.places.partition_root):
                self.storage.sync(self.places.partition_root)

    def _stands(self, file: PublishedFile) -> bool:
        return self.storage.length(self._target(file.name)) is not None

    def _link_synced(self, source: str, target: str) -> None:
        """Give a file a name that stands before another one is taken away."""
        folder = posixpath.dirname(target)
        self.storage.make_dirs(folder)
        if self.storage.length(target) is None:
            self.storage.link_new(source, target)
        self.storage.sync(folder)

    def _target(self, name: str) -> str:
        return f"{self.places.partition_root}/{name}"

    def examine(self, publication: Publication) -> list[PublishedFile]:
        """Check every file of a revision before anything changes (PC-F27).

        Returns:
            The adds that are not at their target yet.

        Raises:
            PathEscapes: the partition's directory leads out of the table (PC-P11).
            StagedFileMissing, FileLengthWrong, FileContentWrong: a file was lost or damaged.
        """
        below(self.places.table_root, publication.partition.path)
        coming = {file.name for file in publication.adds}
        self._verify([file for file in publication.content if file.name not in coming])
        return [
            file
            for file in publication.adds
            if has_to_move(
                self.storage,
                f"{self.places.work}/{file.staged}",
                self._target(file.name),
                length=file.length,
                sha256=file.sha256,
                window=file.window,
            )
        ]

    def _retract(self, names: Sequence[str | None]) -> None:
        """Take the marker away, and wait until no power cut brings it back over half a revision."""
        for name in filter(None, names):
            self.storage.delete(self._target(name))
        if self.storage.exists(self.places.partition_root):
            self.storage.sync(self.places.partition_root)

    def _move(self, adds: Sequence[PublishedFile], unfinished: Sequence[PublishedFile]) -> None:
        self.storage.make_dirs(self.places.partition_root)
        for file in unfinished:
            self.storage.link_new(f"{self.places.work}/{file.staged}", self._target(file.name))
        # The new names are on the disk before an old one goes: a power cut leaves at least one.
        self.storage.sync(self.places.partition_root)
        for file in adds:
            self.storage.delete(f"{self.places.work}/{file.staged}")

    def _verify(self, files: Sequence[PublishedFile]) -> None:
        """Make sure that everything the marker will list is there (PC-F17)."""
        for file in files:
            found = self.storage.length(self._target(file.name))
            if found is None:
                raise StagedFileMissing(
                    path=f"{self.places.work}/{file.staged}",
                    target=self._target(file.name),
                    window=file.window,
                )
            if found != file.length:
                raise FileLengthWrong(
                    path=self._target(file.name), expected=file.length, found=found
                )

    def _retire(self, files: Sequence[PublishedFile]) -> None:
        for file in files:
            source, target = self._target(file.name), self.places.retired(file.name)
            if self.storage.length(source) is None:
                continue
            # What is retired may go at any time, also by a power cut.
            self.storage.make_dirs(target.rpartition("/")[0], synced=False)
            # A crash inside the move leaves both names on one file.
            if self.storage.length(target) is None:
                self.storage.link_new(source, target)
            self.storage.delete(source)
        if files:
            self.storage.sync(self.places.partition_root)

    def _run_policies(self, plan: CommitPlan) -> None:
        context = PolicyContext(
            pipeline=plan.pipeline,
            table_root=self.places.table_root,
            partition=plan.publication.partition,
            partition_root=self.places.partition_root,
            revision=plan.publication.revision,
            key=plan.publication.digest,
            files=tuple(file.name for file in plan.publication.content),
            rows=plan.publication.rows,
            marker_name=plan.marker_name,
            marker=plan.marker,
            storage=self.storage,
            scratch=self.places.scratch,
        )
        for name, policy in self.policies:
            try:
                policy.commit(context)
            except TidegateError:
                raise
            # Also one that ends its process: other partitions go on.
            except (Exception, SystemExit) as broken:
                raise PolicyFailed(
                    pipeline=plan.pipeline,
                    partition=str(plan.publication.partition),
                    policy=name,
                    problem=f"{type(broken).__name__}: {broken}",
                ) from broken


def is_marked(storage: Storage, folder: str, plan: CommitPlan) -> bool:
    """Return whether the marker that a commit wrote stands in its partition's directory."""
    path = posixpath.join(folder, plan.marker_name)
    try:
        return storage.read_bytes(path) == plan.marker.encode()
    except SourceFileGone:
        return False
