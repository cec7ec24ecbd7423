"""Carry out a commit plan.

Retract, move, verify, retire, policies, marker last (design §4, commit order).

Decides nothing: the plan has the files to add and remove, and a repetition does exactly the same.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tidegate.commit.commit_files import CommitFiles
from tidegate.commit.policies import (
    CommitAhead,
    CommitPolicy,
    CommitSnapshot,
    ListingPolicy,
    PolicyContext,
    foreseen,
    policy_named,
)
from tidegate.errors import PolicyFailed, SourceFileGone
from tidegate.model.publication import CommitPlan, Publication, PublicationState, PublishedFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    import pyarrow as pa

    from tidegate.commit.commit_files import Coming, Places
    from tidegate.model.metastore import TableColumns
    from tidegate.storage import Storage


class CommitSteps(Protocol):
    """The ledger, as the publisher uses it.

    Each call fails with `FenceLost` once a successor took over.
    """

    def check_right(self) -> None:
        """Check that this process may change the partition; called once, under the lock."""

    def advance(self, to: PublicationState) -> None:
        """Record the progress of the commit."""


@dataclass(frozen=True)
class Publisher:
    """Carries out the commit plan of one partition.

    Runs on: one process per partition, under the partition's lock. Called: at least once per
    revision, by any process that finds the publication unrecorded. Failure: before the lock nothing
    has changed. After it a crash leaves files that no marker names; the next attempt replays the
    same plan and ends with the same bytes.
    """

    storage: Storage
    places: Places
    policies: Sequence[tuple[str, CommitPolicy]]
    columns: TableColumns | None = None
    """Those of the table, for a policy that needs them."""
    table: CommitSnapshot | None = None
    """The table by which readers find revisions. Its older states name what a revision removes, so
    that no published file is deleted. None: readers find the files themselves."""
    schema: pa.Schema | None = None
    """The columns of that table."""

    @property
    def files(self) -> CommitFiles:
        """The files of the partition's revisions."""
        return CommitFiles(self.storage, self.places)

    def carry_out(self, plan: CommitPlan, owner: str, steps: CommitSteps) -> None:
        """Publish the plan's revision, from any state that a predecessor left.

        Raises:
            PartitionBusy: another process is moving the partition's files (Transient).
            LedgerBehind: the current revision is a later one; nothing was changed.
            FenceLost: a successor took over; nothing was changed.
            StagedFileMissing, FileLengthWrong, FileContentWrong: a sealed file was lost or damaged
                (PC-F21–F26); nothing was changed.
            PolicyFailed: a policy failed (Transient); the files are there without a marker.
        """
        with self.storage.lock(self.places.lock, owner):
            # A process that slept here while its successor finished must not touch a file.
            steps.check_right()
            coming = self.files.examine(plan.publication)
            self._retract(self._outdated(plan))
            self._move(plan.publication, coming)
            # The marker will list them (PC-F17).
            self.files.verify(plan.publication.content)
            self._retire(plan.publication)
            steps.advance(PublicationState.MOVED)
            self.run_policies(plan, owner)
            steps.advance(PublicationState.MARKED)

    def take_back(
        self,
        plan: CommitPlan,
        owner: str,
        steps: CommitSteps,
        send_back: Callable[[], None] = lambda: None,
    ) -> None:
        """Undo a commit that cannot be finished, and restore the previous revision.

        A marker that was retracted stays retracted, and files that were lost after they were
        retired stay lost: the next commit that needs one names it. Added files are moved back to
        staging, because their windows may still count. May be repeated after a crash at any point.

        Args:
            plan: of the commit.
            owner: the process that takes it back.
            steps: its ledger.
            send_back: sends readers to the revision before, of which nothing was changed; called
                before the directory of this one goes.

        Raises:
            PartitionBusy: another process is moving the partition's files (Transient).
            FenceLost: a successor took over; nothing was changed.
        """
        with self.storage.lock(self.places.lock, owner):
            steps.check_right()
            publication = plan.publication
            came = [file for file in publication.adds if self.files.stands(file)]
            if self.places.former_root is not None:
                send_back()
                self._take_away(plan, came)
                return
            gone = [file for file in publication.removes if not self.files.stands(file)]
            if came or gone or is_marked(self.storage, self.places.partition_root, plan):
                self._retract([plan.marker_name, plan.former_marker])
            for file in came:
                self._link_synced(self.files.target(file.name), self.files.staged(file))
            for file in gone:
                retired = self._retired(publication, file)
                if self.storage.length(retired) is not None:
                    self._link_synced(retired, self.files.target(file.name))
            if self.table is not None:
                self.table.take_back(self.context(publication, plan.pipeline, owner))
            for file in came if self.table is None else ():
                self.storage.delete(self.files.target(file.name))
            # Also if there was nothing left to do: another process may have died before this.
            if self.storage.exists(self.places.partition_root):
                self.storage.sync(self.places.partition_root)

    def _take_away(self, plan: CommitPlan, came: Sequence[PublishedFile]) -> None:
        """Remove the directory of a revision that cannot be finished, its marker first."""
        root = self.places.partition_root
        self._retract([plan.marker_name])
        for file in came:
            self._link_synced(self.files.target(file.name), self.files.staged(file))
        if self.storage.exists(root):
            self.storage.delete_tree(root)
            self.storage.sync(posixpath.dirname(root))

    def hold(self, publication: Publication, pipeline: str, owner: str) -> None:
        """Let a held revision be read beside the published one, where its table can have both.

        Raises:
            PartitionBusy: another process is moving the partition's files (Transient).
            TidegateError: the table refuses it, or a file was lost or damaged.
        """
        if self.table is None:
            return
        with self.storage.lock(self.places.lock, owner):
            self._link(self.files.examine(publication))
            self.files.verify(publication.content)
            self.table.hold(self.context(publication, pipeline, owner))

    def context(
        self,
        publication: Publication,
        pipeline: str,
        owner: str,
        marker_name: str = "",
        marker: str = "",
    ) -> PolicyContext:
        """Return what policies receive for a publication."""
        return PolicyContext(
            pipeline=pipeline,
            table_root=self.places.table_root,
            partition=publication.partition,
            partition_root=self.places.partition_root,
            revision=publication.revision,
            key=publication.digest,
            files=tuple(file.name for file in publication.content),
            rows=publication.rows,
            size_bytes=sum(file.length for file in publication.content),
            marker_name=marker_name,
            marker=marker,
            storage=self.storage,
            columns=self.columns,
            scratch=self.places.scratch,
            publication=publication,
            owner=owner,
            schema=self.schema,
        )

    def _link_synced(self, source: str, target: str) -> None:
        """Give a file its new name durably, before the old one is removed."""
        folder = posixpath.dirname(target)
        self.storage.make_dirs(folder)
        if self.storage.length(target) is None:
            self.storage.link_new(source, target)
        self.storage.sync(folder)

    def foresee(self, publication: Publication, pipeline: str) -> None:
        """Ask every policy whether it will do its part, before anything changes (PC-A13).

        Raises:
            PolicyRefused: one of them will not (Transient).
        """
        ahead = CommitAhead(
            pipeline,
            self.places.table_root,
            self.columns,
            publication.partition,
            publication.revision,
            tuple(file.name for file in publication.content),
            publication.rows,
        )
        for name, policy in self.policies:
            foreseen(name, policy, ahead)

    def _retract(self, names: Sequence[str | None]) -> None:
        """Remove the marker durably, so that no power cut brings it back over half a revision."""
        for name in filter(None, names):
            self.storage.delete(self.files.target(name))
        if self.storage.exists(self.places.partition_root):
            self.storage.sync(self.places.partition_root)

    def _outdated(self, plan: CommitPlan) -> list[str | None]:
        """Return the markers that must not stand while files change.

        In a directory of its own, no marker stands before all files are there.
        """
        if self.places.former_root is None:
            return [plan.marker_name, plan.former_marker]
        is_own = is_marked(self.storage, self.places.partition_root, plan)
        return [] if is_own else [plan.marker_name]

    def _move(self, publication: Publication, coming: Coming) -> None:
        self._link(coming)
        if self.places.former_root is not None:
            names = [file.name for file in publication.staying]
            found = self.storage.lengths(map(self.files.target, names))
            lacking = [name for name in names if found[self.files.target(name)] is None]
            self.storage.link_all(
                (self.files.stood(name), self.files.target(name)) for name in lacking
            )
            self.storage.sync(self.places.partition_root)
        # The new names are on the disk before an old one is removed: a power cut leaves at least
        # one.
        self.storage.delete_all(map(self.files.staged, publication.adds))

    def _link(self, coming: Coming) -> None:
        self.storage.make_dirs(self.places.partition_root)
        self.storage.link_all(
            (self.files.staged(file), self.files.target(file.name)) for file in coming.staged
        )
        uploads = self.storage.uploads(self.places.partition_root) if coming.sent else None
        if uploads is not None:
            uploads.complete_all(file.upload for file in coming.sent if file.upload is not None)
        self.storage.sync(self.places.partition_root)

    def _retire(self, publication: Publication) -> None:
        moves = [
            (self.files.stood(file.name), self._retired(publication, file))
            for file in publication.removes
        ]
        found = self.storage.lengths(path for move in moves for path in move)
        moves = [(source, target) for source, target in moves if found[source] is not None]
        folders = sorted({posixpath.dirname(target) for _, target in moves})
        for folder in folders:
            self.storage.make_dirs(folder)
        # A crash during the move leaves one file with both names.
        self.storage.link_all(move for move in moves if found[move[1]] is None)
        # The parts of a joined file, and what an undo sets aside, may count again.
        for folder in folders:
            self.storage.sync(folder)
        if self.places.former_root is not None or self.table is not None:
            return
        self.storage.delete_all(source for source, _ in moves)
        if publication.removes:
            self.storage.sync(self.places.partition_root)

    def _retired(self, publication: Publication, file: PublishedFile) -> str:
        """Return where a removed file goes: what an undo sets aside may count again."""
        if publication.undone is not None:
            return self.files.staged(file)
        return self.places.retired(file.name)

    def differences(self, plan: CommitPlan) -> tuple[str, ...]:
        """Return how the lists that policies keep differ from a revision that stands (PC-A14).

        Raises:
            PolicyFailed: a policy cannot tell (Transient).
        """
        return tuple(said for _, _, said in self._differing(plan, self._context(plan, "")))

    def list_again(self, plan: CommitPlan, owner: str, steps: CommitSteps) -> tuple[str, ...]:
        """Write the entries of a revision that stands anew, where they differ (PC-A14).

        Neither files nor the marker are touched. May be repeated after a crash at any point.

        Returns:
            How they differed.

        Raises:
            PartitionBusy: another process is moving the partition's files (Transient).
            LedgerBehind: the current revision is a later one; nothing was changed.
            FenceLost: a successor took over; nothing was changed.
            PolicyFailed: a policy failed (Transient).
        """
        with self.storage.lock(self.places.lock, owner):
            steps.check_right()
            context, said = self._context(plan, owner), list[str]()
            for name, policy, differs in self._differing(plan, context):
                with self._explained(plan, name):
                    policy.commit(context)
                said.append(differs)
            return tuple(said)

    def _differing(
        self, plan: CommitPlan, context: PolicyContext
    ) -> Iterator[tuple[str, CommitPolicy, str]]:
        for name, policy in self.policies:
            if not isinstance(policy, ListingPolicy):
                continue
            with self._explained(plan, name):
                differs = policy.differs(context)
            if differs is not None:
                yield name, policy, differs

    def _context(self, plan: CommitPlan, owner: str) -> PolicyContext:
        publication = plan.publication
        return self.context(publication, plan.pipeline, owner, plan.marker_name, plan.marker)

    def run_policies(self, plan: CommitPlan, owner: str) -> None:
        """Run the policies of a revision whose files are there, once more if it stood before.

        Raises:
            PolicyFailed: a policy failed (Transient).
        """
        context = self._context(plan, owner)
        for name, policy in self.policies:
            with self._explained(plan, name):
                policy.commit(context)

    def _explained(self, plan: CommitPlan, policy: str) -> AbstractContextManager[None]:
        partition = str(plan.publication.partition)
        return policy_named(PolicyFailed, plan.pipeline, partition, policy)


def is_marked(storage: Storage, folder: str, plan: CommitPlan) -> bool:
    """Return whether the marker that a commit wrote is in its partition's directory."""
    path = posixpath.join(folder, plan.marker_name)
    try:
        return storage.read_bytes(path) == plan.marker.encode()
    except SourceFileGone:
        return False
