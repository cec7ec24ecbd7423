"""The snapshot of an Iceberg table: readers by its catalog find what is committed, and when."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from tidegate.config import resolve_secret
from tidegate.model.held_branch import held_branch
from tidegate.storage import S3Options, table_properties

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from tidegate.commit.policies.protocol import PolicyContext
    from tidegate.config import SnapshotPolicy, TargetConfig
    from tidegate.metastore.iceberg.catalog import TableAddress
    from tidegate.metastore.iceberg.snapshots import Change, TableCommits
    from tidegate.model.partition import Partition


@dataclass(frozen=True)
class CommitSnapshot:
    """Commit the files of a revision to the table, in one snapshot.

    Failure: a repetition finds the files in the table, and does nothing.
    """

    target: TargetConfig

    @classmethod
    def of(cls, _options: SnapshotPolicy, target: TargetConfig) -> CommitSnapshot:
        """Prepare; nothing is connected yet."""
        return cls(target)

    def commit(self, context: PolicyContext) -> None:
        """Publish to the branch, and drop the one on which the revision was held.

        Raises:
            TargetTableMoved: the partition is not as the revision before left it.
            TargetTableGone: there is no table any more.
            TableCatalogSilent, TableBusy: the next publish tries again (Transient).
            TargetTableOwned, TargetTableDiffers, TargetBranchMissing, TableColumnUnfit,
                TableNamespaceMissing, TableCatalogUnknown: it cannot be published to.
        """
        self._commits(context.pipeline).bring(_change(context))

    def take_back(self, context: PolicyContext) -> None:
        """Restore what the partition had before, if the commit was made; raises as `commit`."""
        change = _change(context)
        if self.names(context.pipeline, change.partition, change.folder) == frozenset(change.after):
            self._commits(context.pipeline).bring(_reversed(change))

    def hold(self, context: PolicyContext) -> str:
        """Let a held revision stand on a branch of its own; raises as `commit`.

        Returns:
            The name of the branch.
        """
        return self._commits(context.pipeline).hold(_change(context))

    def drop(self, pipeline: str, partition: Partition) -> None:
        """Remove the branch of a partition that is not held any more."""
        self.drop_branch(pipeline, held_branch(partition))

    def drop_branch(self, pipeline: str, branch: str) -> None:
        """Remove the branch of a held partition; raises as `commit`."""
        self._commits(pipeline).drop(branch)

    def held_files(self, pipeline: str) -> Mapping[str, frozenset[str]]:
        """Return held branch → data files that are not published; raises as `commit`."""
        return self._commits(pipeline).held_files()

    def clear(self, pipeline: str, partition: Partition, folder: str) -> None:
        """Take a partition out of the table, whoever wrote what it has now; raises as `commit`."""
        from tidegate.metastore.iceberg.snapshots import DIGEST, Change

        summary = {
            "tidegate.pipeline": pipeline,
            "tidegate.partition": str(partition),
            DIGEST: "reset",
        }
        change = Change(partition, folder, frozenset(), (), 0, summary, None)
        replace(self._commits(pipeline), replaces=True).bring(change)

    def release(self, pipeline: str, *, is_left: bool = False) -> None:
        """Remove all branches of held partitions; and leave the table to others, if asked."""
        self._commits(pipeline).release(is_left=is_left)

    def names(self, pipeline: str, partition: Partition, folder: str) -> frozenset[str] | None:
        """Return the names of the files that readers find of a partition.

        Returns:
            None if another writer changed the partition, so that it is no revision's.
        """
        return self._commits(pipeline).names(partition, folder)

    def examine(self, context: PolicyContext, published: Callable[[], Partition | None]) -> None:
        """Check what a commit would refuse, before anything is changed; raises as `commit`.

        Args:
            context: of the commit.
            published: returns a partition with rows that is published; None if there is none. It
                is called only if there is no table.
        """
        self._commits(context.pipeline).examine(_change(context), published)

    def foreseen(self, columns: pa.Schema, pipeline: str) -> str:
        """Say what a commit would do to the table; raises as `commit`."""
        commits = self._commits(pipeline)
        table = commits.address.load()
        if table is None:
            commits.address.check_namespace()
            return "not there yet: the first publish makes it"
        commits.shape.check(commits.address, table)
        before = table.schema()
        transaction = table.transaction()
        commits.shape.agree(commits.address, transaction, columns)
        after = transaction.table_metadata.schema()
        changed = [field.name for field in after.fields if field not in before.fields]
        return f"the next publish changes {', '.join(changed)}" if changed else "with all columns"

    def _commits(self, pipeline: str) -> TableCommits:
        # The library takes a moment to load, and most commands need no catalog.
        from tidegate.metastore.iceberg.shape import Shape
        from tidegate.metastore.iceberg.snapshots import TableCommits

        target = self.target
        shape = Shape(
            pipeline=pipeline,
            location=resolve_secret(target.path, "target.path").rstrip("/"),
            data=resolve_secret(target.root, "target.path"),
            branch=target.branch,
            keys=tuple(field.name for field in target.partition_by),
            evolution=target.evolution,
        )
        return TableCommits(self._address, shape, replaces=target.on_foreign_change == "replace")

    @cached_property
    def _address(self) -> TableAddress:
        from tidegate.metastore.iceberg.catalog import TableAddress

        catalog = self.target.catalog
        assert catalog is not None, "the pipeline file is refused without it"
        properties = {
            key: resolve_secret(value, f"target.catalog.{key}")
            for key, value in catalog.properties.items()
        }
        if self.target.is_in_store:
            properties = table_properties(S3Options.of(self.target.store), properties)
        return TableAddress(catalog.name, str(self.target.table), properties)


def _change(context: PolicyContext) -> Change:
    from tidegate.metastore.iceberg.snapshots import DIGEST, Change

    publication = context.publication
    assert publication is not None, "the publisher tells it"
    # A file without rows, as an erasure leaves one, is no part of a table: no scan finds it.
    after = [file for file in publication.content if file.rows]
    added = {file.name for file in publication.adds}
    stayed = {file.name for file in after} - added
    return Change(
        partition=context.partition,
        folder=context.partition_root,
        before=frozenset(stayed | {file.name for file in publication.removes if file.rows}),
        after=tuple(file.name for file in after),
        revision=publication.base_revision,
        summary={
            "tidegate.pipeline": context.pipeline,
            "tidegate.partition": str(context.partition),
            "tidegate.revision": str(context.revision),
            DIGEST: context.key,
            "tidegate.run": context.owner,
        },
        columns=context.schema,
    )


def _reversed(change: Change) -> Change:
    back = {**change.summary, "tidegate.revision": str(change.revision)}
    return replace(
        change, before=frozenset(change.after), after=tuple(sorted(change.before)), summary=back
    )
