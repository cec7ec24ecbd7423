"""The metastore: readers who find partitions by a catalog find what is committed (PC-A09, A12)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidegate.config import MetastorePolicy
from tidegate.errors import (
    ColumnsUnknown,
    ListedTableDiffers,
    MetastoreRefused,
    PartitionUnlistable,
)
from tidegate.metastore import open_metastore
from tidegate.metastore.agreement import agreed, same_place
from tidegate.model.metastore import ListedPartition, ListedTable
from tidegate.model.partition import HIVE_DEFAULT_NAME
from tidegate.storage import is_object

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.commit.policies.protocol import CommitAhead, PolicyContext
    from tidegate.config import MetastoreConfig, TargetConfig
    from tidegate.metastore.protocol import Metastore, SparkCatalog
    from tidegate.model.metastore import ListedColumn, TableColumns
    from tidegate.model.partition import Partition

_ATTEMPTS = 10
"""How often columns are compared again after other commits changed them."""


@dataclass(frozen=True)
class ListInMetastore:
    """List a partition, or replace what is listed of it.

    Failure: the table and the partition are listed by single calls, each of which is whole; a
    repetition finds what is done. Another commit that adds columns at the same moment may replace
    those of this one, so they are compared again.
    """

    metastore: Metastore
    options: MetastoreConfig
    format: str
    moves: bool = False
    """Whether the table itself goes from directory to directory, which have revisions of it."""

    @classmethod
    def of(
        cls, _options: MetastorePolicy, target: TargetConfig, catalog: SparkCatalog
    ) -> ListInMetastore:
        """Prepare; nothing is connected or started yet."""
        options = target.metastore
        assert options is not None, "the pipeline file is refused without it"
        moves = target.layout != "in_place" and not target.partition_by
        uri, table = options.uri, options.table
        metastore = catalog(table) if uri is None else open_metastore(uri, table)
        return cls(metastore, options, target.format, moves)

    def commit(self, context: PolicyContext) -> None:
        """List the table and the partition.

        Raises:
            MetastoreSilent, MetastoreRefused: see `Metastore` (Transient).
            DatabaseMissing, ListedTableDiffers, ColumnsUnknown, PartitionUnlistable,
                SparkCatalogUnfit: it cannot be listed.
        """
        self._check_listable(context.partition)
        self._list_table(context)
        values = listed_values(context.partition)
        if not values:
            return
        if not context.files and self.options.on_empty == "drop":
            self.metastore.drop(values)
            return
        wanted = self._wanted(context)
        # Without properties nothing tells that it was listed for this revision: its files may be
        # others, at which Spark has to look again.
        listed = self.metastore.partition(values) if self.metastore.keeps_properties else None
        if listed is None or not _is_same(listed, wanted):
            self.metastore.put(wanted)

    def location(self, partition: Partition) -> str | None:
        """Return the directory to which readers of a partition are sent; None if it is not listed.

        Raises:
            MetastoreSilent, MetastoreRefused: see `Metastore` (Transient).
        """
        values = listed_values(partition)
        found = self.metastore.partition(values) if values else self.metastore.table()
        return None if found is None else found.location

    def differs(self, context: PolicyContext) -> str | None:
        """Return how table or partition are listed otherwise than they stand; raises as `commit`.

        Raises:
            ListedTableDiffers: the table is another one, which only people can change.
        """
        self._check_listable(context.partition)
        found, name = self.metastore.table(), self.options.table
        if found is None:
            return f"the table {name} is not listed"
        if context.columns is not None:
            wanted = self._table(context.columns, self._root(context), context.pipeline)
            needed = self._agreed(found, wanted)
            changed = [column.name for column in needed if column not in found.columns.columns]
            if changed:
                return f"the table {name} is listed without {', '.join(changed)} as they stand"
        values = listed_values(context.partition)
        if not values:
            is_there = same_place(found.location, address(self._root(context)))
            return None if is_there else f"the table {name} is listed at {found.location}"
        return self._differs(context, values)

    def _differs(self, context: PolicyContext, values: tuple[str, ...]) -> str | None:
        listed, wanted = self.metastore.partition(values), self._wanted(context)
        name = self.options.table
        if not context.files and self.options.on_empty == "drop":
            return None if listed is None else f"it is listed in {name} without a file"
        if listed is None:
            return f"it is not listed in {name}"
        if not same_place(listed.location, wanted.location):
            return f"it is listed in {name} at {listed.location}"
        if listed.revision != wanted.revision:
            told = "by somebody else" if listed.revision is None else f"as {listed.revision}"
            return f"it is listed in {name} {told}, and revision {wanted.revision} stands"
        return None if _is_same(listed, wanted) else f"it is listed in {name} with other counts"

    def foresee(self, ahead: CommitAhead) -> str:
        """Return what a commit does to the table; raises as `commit`.

        Spark is started for a commit alone: `tidegate check` asks for none.
        """
        name = self.options.place
        if ahead.partition is not None:
            self._check_listable(ahead.partition)
        elif self.options.through == "spark":
            return f"{name}, compared when a publish begins"
        found = self.metastore.table()
        if ahead.columns is None:
            if found is None and ahead.partition is not None:
                raise ColumnsUnknown(table=self.options.table, partition=str(ahead.partition))
            return f"{name}, compared once there is a file"
        if found is None:
            return f"{name}, not there yet: the first publish makes it"
        self._check_kept(found)
        wanted = self._table(ahead.columns, ahead.table_root, ahead.pipeline)
        needed = self._agreed(found, wanted)
        changed = [column.name for column in needed if column not in found.columns.columns]
        does = f"the next publish changes {', '.join(changed)}" if changed else "with all columns"
        return f"{name}, {does}"

    def _check_listable(self, partition: Partition) -> None:
        problem = _unlistable(partition)
        if problem is not None:
            raise PartitionUnlistable(
                table=self.options.table, partition=str(partition), problem=problem
            )

    def _root(self, context: PolicyContext) -> str:
        return context.partition_root if self.moves else context.table_root

    def _table(self, columns: TableColumns, root: str, pipeline: str) -> ListedTable:
        return ListedTable(columns, address(root), self.format, pipeline)

    def _agreed(self, found: ListedTable, wanted: ListedTable) -> tuple[ListedColumn, ...]:
        changes_types = self.metastore.changes_types
        return agreed(self.options.table, found, wanted, changes_types=changes_types)

    def _wanted(self, context: PolicyContext) -> ListedPartition:
        values, at = listed_values(context.partition), address(context.partition_root)
        if not self.metastore.keeps_properties:
            return ListedPartition(values, at, None)
        counts = (len(context.files), context.rows, context.size_bytes)
        return ListedPartition(values, at, context.revision, context.key, *counts)

    def _check_kept(self, found: ListedTable) -> None:
        """Check that whatever commits do to the table leaves it to its owner, and its files."""
        if self.moves and found.pipeline is None:
            raise ListedTableDiffers(
                table=self.options.table,
                part="location",
                expected="one of a table that the pipeline made, which each revision moves",
                found=f"{found.location} of a table that somebody else made",
            )
        if self.options.on_empty == "drop" and not found.keeps_files:
            raise ListedTableDiffers(
                table=self.options.table,
                part="type",
                expected="an external table, whose files stay when `on_empty: drop` takes effect",
                found="a managed one",
            )

    def _list_table(self, context: PolicyContext) -> None:
        columns = context.columns
        root = self._root(context)
        for _ in range(_ATTEMPTS):
            found = self.metastore.table()
            if columns is None:
                if found is None:
                    raise ColumnsUnknown(table=self.options.table, partition=str(context.partition))
                columns = found.columns
            wanted = self._table(columns, root, context.pipeline)
            if found is None:
                self.metastore.create(wanted)
                continue
            self._check_kept(found)
            needed = self._agreed(found, wanted)
            if needed == found.columns.columns:
                if not same_place(found.location, wanted.location):
                    self.metastore.set_location(wanted.location)
                return
            self.metastore.widen(needed)
        problem = f"its columns were changed {_ATTEMPTS} times while this commit compared them"
        server, table = self.options.server, self.options.table
        raise MetastoreRefused(uri=server, table=table, problem=problem)


def listing_of(target: TargetConfig, catalog: SparkCatalog) -> Callable[[Partition], str | None]:
    """Return what tells the directory to which a metastore sends the readers of a partition.

    It returns None for a partition that is not listed, and raises as `Metastore` does.
    """
    if target.metastore is None:
        return lambda _: None
    return ListInMetastore.of(MetastorePolicy(), target, catalog).location


def listed_values(partition: Partition) -> tuple[str, ...]:
    """Return the values of a partition as a metastore lists them."""
    return tuple(HIVE_DEFAULT_NAME if value is None else value for _, value in partition.values)


def address(path: str) -> str:
    """Return the address of a directory: catalogs take a path for one of their own store.

    Hadoop's and Hive's word for S3 is `s3a`, which the others know, too.
    """
    return f"s3a:{path.removeprefix('s3:')}" if is_object(path) else f"file:{path}"


def _unlistable(partition: Partition) -> str | None:
    if any(value == HIVE_DEFAULT_NAME for _, value in partition.values):
        return "one of its values is the name of Hive's default partition, which is NULL there"
    # Hive finds a partition by its path, which databases compare as if blanks at the end of the
    # longer one were not there. Blanks before it, tabs and letters in another case tell them apart.
    if partition.path.endswith(" "):
        return "it ends with a blank, with which a metastore takes it for the one without"
    return None


def _is_same(listed: ListedPartition, wanted: ListedPartition) -> bool:
    is_there = same_place(listed.location, wanted.location)
    return is_there and replace(listed, location=wanted.location) == wanted
