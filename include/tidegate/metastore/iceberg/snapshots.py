"""Bring the files of one partition to what a revision says, in one snapshot of a table.

Whether that was done already is read from the files that the table has, not from its history:
snapshots expire, catalogs are restored, and the answer to a commit may be lost.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.update import (
    AssertRefSnapshotId,
    AssertTableUUID,
    RemoveSnapshotRefUpdate,
    SetSnapshotRefUpdate,
)
from tenacity import (
    RetryError,
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    wait_random_exponential,
)

from tidegate.errors import (
    ColumnsUnknown,
    TableBusy,
    TableCatalogSilent,
    TargetTableGone,
    TargetTableMoved,
)
from tidegate.metastore.agreement import place
from tidegate.metastore.iceberg.data_files import ListedFile, described, listed
from tidegate.metastore.iceberg.held_files import held_files
from tidegate.metastore.iceberg.shape import OWNER, Shape
from tidegate.model.held_branch import HELD, held_branch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa
    from pyiceberg.table import Table, Transaction

    from tidegate.metastore.iceberg.catalog import TableAddress
    from tidegate.model.partition import Partition

ATTEMPTS = 12
"""How often a commit is tried while others come first; hundreds of partitions may go out at once.
"""
DIGEST = "tidegate.publication"
_SECOND = re.compile(
    r"sequence number \d+ older than last sequence number|first row id smaller than"
)
"""How pyiceberg words that another branch has a commit since, which takes no class of its own.

Numbers of snapshots and rows are those of the table, and requirements are those of a branch.
"""


@dataclass(frozen=True)
class Change:
    """What a publication does to the files of its partition."""

    partition: Partition
    folder: str
    """Where its files are."""
    before: frozenset[str]
    """Names of the files of the revision that it is based on."""
    after: tuple[str, ...]
    """Names of the files that the partition has then."""
    revision: int
    """The revision that it is based on."""
    summary: Mapping[str, str]
    """What the snapshot says of itself."""
    columns: pa.Schema | None
    """Those of the table; None if the plans that tell them are lost."""


@dataclass(frozen=True)
class TableCommits:
    """Commits to one table, by any number of processes at once.

    Failure: a commit is whole or was not made. Where its answer was lost, the next attempt finds
    the files in the table, or the commit is refused because the branch has moved.
    """

    address: TableAddress
    shape: Shape
    replaces: bool
    """Whether what another writer did to a partition is replaced."""

    def bring(self, change: Change) -> None:
        """Bring a partition to a revision; does nothing if it is there.

        Raises:
            TargetTableMoved: it has other files than the revision before.
            TargetTableGone: there is no table, though there was a revision before.
            TableBusy: others came first at each attempt (Transient).
            TableCatalogSilent: the catalog does not answer (Transient).
            TableFileMissing: the store does not have a file of the table.
            TargetTableOwned, TargetTableDiffers, TargetBranchMissing, TableColumnUnfit,
                TableNamespaceMissing: it cannot be published to.
        """
        self._patiently(self._bring, change)

    def hold(self, change: Change) -> str:
        """Let a partition stand on a branch of its own as it would be published.

        Returns:
            The name of the branch.

        Raises:
            TargetTableMoved and others: see `bring`.
        """
        self._patiently(self._hold, change)
        return held_branch(change.partition)

    def drop(self, branch: str) -> None:
        """Remove the branch on which a partition is held, if there is one."""
        self._patiently(self._drop, branch)

    def held_files(self) -> dict[str, frozenset[str]]:
        """Return the data files on which only the branches of held partitions stand.

        Returns:
            Branch → where each file is that the published branch has not.

        Raises:
            TableCatalogSilent: the catalog or store does not answer (Transient).
        """
        table = self.address.load()
        if table is None:
            return {}
        with self.address.answering():
            return held_files(table, self._head(table))

    def release(self, *, is_left: bool) -> None:
        """Remove all branches on which partitions are held.

        Args:
            is_left: whether the table is left to the next pipeline, too.
        """
        self._patiently(self._release, is_left)

    def names(self, partition: Partition, folder: str) -> frozenset[str] | None:
        """Return the names of the files that the published branch has of a partition.

        Args:
            partition: the partition.
            folder: where its files are.

        Returns:
            None if rows of one are deleted, or one is elsewhere: another writer changed it.
        """
        table = self.address.load()
        found = {} if table is None else self._listed(table, partition)
        if any(
            not file.is_whole or posixpath.dirname(path) != place(folder)
            for path, file in found.items()
        ):
            return None
        return frozenset(map(posixpath.basename, found))

    def examine(self, change: Change, published: Callable[[], Partition | None]) -> None:
        """Check what `bring` refuses, before anything is changed; raises as `bring`.

        Args:
            change: what is to be done.
            published: returns a partition with rows that is published; None if there is none.
        """
        table = self.address.load()
        if table is None:
            self.address.check_namespace()
            if (there := published()) is not None:
                raise TargetTableGone(table=self.address.name, partition=str(there))
            return
        self.shape.check(self.address, table)
        if change.columns is not None:
            self.shape.agree(self.address, table.transaction(), change.columns)
        found = self._listed(table, change.partition)
        if not _has(found, _places(table, change)):
            self._check_before(table, change, found)

    def _patiently(self, step: Any, given: Any) -> None:
        retrying = Retrying(
            retry=retry_if_exception_type((CommitFailedException, TableCatalogSilent)),
            stop=stop_after_attempt(ATTEMPTS),
            wait=wait_random_exponential(0.05, max=2),
        )
        try:
            retrying(step, given)
        except RetryError as tired:
            last = tired.last_attempt.exception()
            if isinstance(last, TableCatalogSilent):
                raise last from tired
            raise TableBusy(table=self.address.name, attempts=ATTEMPTS) from last

    def _bring(self, change: Change) -> None:
        table = self._opened(change)
        if table is None:
            return
        branch = held_branch(change.partition)
        wanted = _places(table, change)
        found = self._listed(table, change.partition)
        transaction = table.transaction()
        if not _has(found, wanted):
            self._check_before(table, change, found)
            held = self._audited(table, change)
            if held is None:
                self._write(table, transaction, change, found, self.shape.branch)
            else:
                transaction._stage((_pointing(self.shape.branch, held),))
        if branch in table.metadata.refs:
            transaction._stage((RemoveSnapshotRefUpdate(ref_name=branch),))
        self._commit(table, transaction, self.shape.branch)

    def _hold(self, change: Change) -> None:
        table = self._opened(change, is_held=True)
        if table is None:
            return
        branch, refs = held_branch(change.partition), table.metadata.refs
        found = self._listed(table, change.partition)
        self._check_before(table, change, found)
        if self._audited(table, change) is not None:
            return
        transaction = table.transaction()
        if branch in refs:
            transaction._stage((RemoveSnapshotRefUpdate(ref_name=branch),))
        if (head := self._head(table)) is not None:
            transaction._stage((_pointing(branch, head),))
        self._write(table, transaction, change, found, branch)
        self._commit(table, transaction, branch)

    def _drop(self, branch: str) -> None:
        table = self.address.load()
        if table is None or branch not in table.metadata.refs:
            return
        transaction = table.transaction()
        transaction._stage((RemoveSnapshotRefUpdate(ref_name=branch),))
        self._commit(table, transaction, branch)

    def _release(self, is_left: bool) -> None:
        table = self.address.load()
        if table is None:
            return
        transaction = table.transaction()
        for name in table.metadata.refs:
            if name.startswith(HELD):
                transaction._stage((RemoveSnapshotRefUpdate(ref_name=name),))
        if is_left and table.properties.get(OWNER) == self.shape.pipeline:
            transaction.remove_properties(OWNER)
        self._commit(table, transaction, self.shape.branch)

    def _opened(self, change: Change, *, is_held: bool = False) -> Table | None:
        """Return the table, made if there is none; None if no file has to be in it.

        A partition without files is none in an Iceberg table. A branch needs a snapshot to begin
        at.
        """
        table = self.address.load()
        if table is None:
            if change.before:
                raise TargetTableGone(table=self.address.name, partition=str(change.partition))
            if not change.after:
                return None
            if change.columns is None:
                raise ColumnsUnknown(table=self.address.name, partition=str(change.partition))
            self.shape.make(self.address, change.columns)
            table = self.address.load()
        if table is None:
            return None
        self.shape.check(self.address, table)
        if not table.metadata.refs and (is_held or self.shape.branch != MAIN_BRANCH):
            return self._begun(table)
        return table

    def _begun(self, table: Table) -> Table | None:
        """Return a table without snapshots with an empty one, as engines do before a branch."""
        transaction = table.transaction()
        summary = {OWNER: self.shape.pipeline}
        empty = transaction.update_snapshot(summary, MAIN_BRANCH).fast_append()
        with self.address.answering():
            empty.commit()
        if self.shape.branch != MAIN_BRANCH:
            transaction._stage((_pointing(self.shape.branch, empty.snapshot_id),))
        self._commit(table, transaction, MAIN_BRANCH)
        return self.address.load()

    def _head(self, table: Table) -> int | None:
        ref = table.metadata.refs.get(self.shape.branch)
        return None if ref is None else ref.snapshot_id

    def _listed(self, table: Table, partition: Partition) -> dict[str, ListedFile]:
        with self.address.answering():
            return listed(table, self._head(table), partition)

    def _audited(self, table: Table, change: Change) -> int | None:
        """Return the snapshot on which a publication was held, if nothing was published since."""
        ref = table.metadata.refs.get(held_branch(change.partition))
        held = None if ref is None else table.metadata.snapshot_by_id(ref.snapshot_id)
        if held is None or held.parent_snapshot_id != self._head(table) or not held.summary:
            return None
        is_same = held.summary.get(DIGEST) == change.summary[DIGEST]
        return held.snapshot_id if is_same else None

    def _check_before(self, table: Table, change: Change, found: Mapping[str, ListedFile]) -> None:
        base = {place(posixpath.join(change.folder, name)) for name in change.before}
        deleted = {path for path, file in found.items() if not file.is_whole}
        can_replace = all(file.entry is not None for file in found.values())
        if (self.replaces and can_replace) or (found.keys() == base and not deleted):
            return
        missing, more = base - found.keys(), found.keys() - base
        told = [
            f"has no {_shown(missing)}" if missing else "",
            f"has {_shown(more)}, which the revision has not" if more else "",
            f"deletes rows of {_shown(deleted)}" if deleted else "",
        ]
        self._refuse(table, change, " and ".join(filter(None, told)))

    def _refuse(self, table: Table, change: Change, problem: str) -> NoReturn:
        raise TargetTableMoved(
            table=self.address.name,
            branch=self.shape.branch,
            partition=str(change.partition),
            revision=change.revision,
            snapshot=str(self._head(table) or "none"),
            problem=problem,
        )

    def _write(
        self,
        table: Table,
        transaction: Transaction,
        change: Change,
        found: Mapping[str, ListedFile],
        branch: str,
    ) -> None:
        """Stage a snapshot that has the wanted files of the partition, and no others."""
        if change.columns is not None:
            self.shape.agree(self.address, transaction, change.columns)
        metadata, wanted = transaction.table_metadata, _places(table, change)
        update = transaction.update_snapshot(dict(change.summary), branch)
        stays = {path for path, file in found.items() if file.is_whole and path in wanted}
        gone = [file.entry for path, file in found.items() if path not in stays and file.entry]
        producer = update.overwrite() if gone else update.merge_append()
        for file in gone:
            producer.delete_data_file(file)
        with self.address.answering():
            for path, written in wanted.items():
                if path not in stays:
                    producer.append_data_file(described(table, metadata, written, change.partition))
            producer.commit()

    def _commit(self, table: Table, transaction: Transaction, branch: str) -> None:
        """Make one attempt, which counts only if the branch is as it was when it was looked at."""
        updates = transaction._updates
        if not updates:
            return
        ref = table.metadata.refs.get(branch)
        # Of one kind, the library keeps only the first requirement.
        others = (
            item for item in transaction._requirements if not isinstance(item, AssertRefSnapshotId)
        )
        requirements = (
            *others,
            AssertTableUUID(uuid=table.metadata.table_uuid),
            AssertRefSnapshotId(ref=branch, snapshot_id=None if ref is None else ref.snapshot_id),
        )
        with self.address.answering(), _first():
            table.catalog.commit_table(table, requirements, updates)


@contextlib.contextmanager
def _first() -> Iterator[None]:
    """Name a commit that came second alike, whichever branch the first one was made to.

    Raises:
        CommitFailedException: it was not made, and may be tried again.
    """
    try:
        yield
    except ValueError as refused:
        if _SECOND.search(str(refused)) is None:
            raise
        raise CommitFailedException(str(refused)) from refused


def _pointing(branch: str, snapshot: int) -> SetSnapshotRefUpdate:
    return SetSnapshotRefUpdate(
        ref_name=branch,
        type=SnapshotRefType.BRANCH,
        snapshot_id=snapshot,
        max_ref_age_ms=None,
        max_snapshot_age_ms=None,
        min_snapshots_to_keep=None,
    )


def _has(found: Mapping[str, ListedFile], wanted: Mapping[str, str]) -> bool:
    """Return whether a partition has the wanted files, with all of their rows."""
    return found.keys() == wanted.keys() and all(file.is_whole for file in found.values())


def _places(table: Table, change: Change) -> dict[str, str]:
    """Return the files that a partition is to have: where each is → as the table writes it."""
    root = table.location().rstrip("/")
    below = place(change.folder).removeprefix(place(root)).lstrip("/")
    paths = [f"{root}/{below}/{name}" for name in change.after]
    return {place(path): path for path in paths}


def _shown(paths: Any) -> str:
    first, *others = sorted(map(posixpath.basename, paths))
    return f"{first} and {len(others)} other files" if others else first
