"""The protocol of metastores: one table, and its partitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tidegate.model.metastore import ListedColumn, ListedPartition, ListedTable


class Metastore(Protocol):
    """Lists one table. Every call may be repeated, and is whole or has no effect.

    Raises, each of them:
        MetastoreSilent: it does not answer (Transient).
        MetastoreRefused: it answers with an error that it does not explain by a type.
        SparkCatalogUnfit: the catalog of Spark cannot do it.
    """

    @property
    def keeps_properties(self) -> bool:
        """Whether a partition tells its revision, key and counts; else its location alone."""
        ...

    @property
    def changes_types(self) -> bool:
        """Whether the columns of a table may become wider; else new ones may come."""
        ...

    def table(self) -> ListedTable | None:
        """Return the table as it is listed; None if it is not.

        Raises:
            DatabaseMissing: nor is its database.
        """
        ...

    def create(self, table: ListedTable) -> None:
        """List a table unless it is listed, whoever else does the same at this moment."""
        ...

    def widen(self, columns: tuple[ListedColumn, ...]) -> None:
        """Add columns to the table, and change the types of others, but not in its partitions.

        Columns that others added meanwhile stay.
        """
        ...

    def set_location(self, location: str) -> None:
        """Send the readers of the table to another directory, but not those of its partitions."""
        ...

    def partition(self, values: tuple[str, ...]) -> ListedPartition | None:
        """Return a partition as it is listed; None if it is not."""
        ...

    def put(self, partition: ListedPartition) -> None:
        """List a partition, or replace what is listed: location, formats and columns (PC-A09)."""
        ...

    def drop(self, values: tuple[str, ...]) -> None:
        """Take a partition off the list unless it is off; its files stay."""
        ...


SparkCatalog = Callable[[str], Metastore]
"""`database.table` → the table as the catalog of this process's Spark lists it."""
