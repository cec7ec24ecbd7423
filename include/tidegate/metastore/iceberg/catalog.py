"""Open the table of a target in its catalog, with errors that name the table."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from pyiceberg.exceptions import (
    NoSuchNamespaceError,
    NoSuchTableError,
    NotInstalledError,
)

from tidegate.errors import (
    TableCatalogRefuses,
    TableCatalogSilent,
    TableCatalogUnknown,
    TableFileMissing,
    TableNamespaceMissing,
)
from tidegate.metastore.iceberg.answers import REFUSED, denial, is_silence

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table


@dataclass(frozen=True)
class TableAddress:
    """Where a table is found; nothing is connected before the first call."""

    catalog: str
    table: str
    """`namespace.table`."""
    properties: Mapping[str, str] = field(repr=False)
    """What pyiceberg takes, with the secrets of this process."""

    @property
    def name(self) -> str:
        """The table's name for people."""
        return f"{self.catalog}.{self.table}"

    @cached_property
    def opened(self) -> Catalog:
        """The catalog.

        Raises:
            TableCatalogUnknown: the options describe none.
            TableCatalogSilent: it does not answer (Transient).
        """
        # Catalogs bring their clients along.
        from pyiceberg.catalog import load_catalog

        try:
            with self.answering():
                return load_catalog(self.catalog, **self.properties)
        except (ValueError, NotInstalledError) as unknown:
            raise TableCatalogUnknown(table=self.name, problem=str(unknown)) from unknown

    def load(self) -> Table | None:
        """Load the newest metadata; None if there is no such table."""
        with self.answering():
            try:
                return self.opened.load_table(self.table)
            except (NoSuchTableError, NoSuchNamespaceError):
                return None

    def check_namespace(self) -> None:
        """Check that the namespace is there, which not every catalog asks for a table it makes."""
        with self.answering():
            self.opened.load_namespace_properties(self.table.rpartition(".")[0])

    @contextlib.contextmanager
    def answering(self) -> Iterator[None]:
        """Name the table in errors of its catalog.

        Raises:
            TableNamespaceMissing: the catalog does not have the namespace.
            TableCatalogSilent: it does not answer, or the store of the table does not (Transient).
            TableCatalogRefuses: it answers that it will not.
            TableFileMissing: the store does not have a file of the table.
            StoreDenied: the store refuses the credentials.
        """
        try:
            yield
        except NoSuchNamespaceError as absent:
            namespace = self.table.rpartition(".")[0]
            raise TableNamespaceMissing(table=self.name, namespace=namespace) from absent
        except REFUSED as refused:
            raise TableCatalogRefuses(table=self.name, problem=str(refused)) from refused
        except FileNotFoundError as absent:
            raise TableFileMissing(table=self.name, problem=str(absent)) from absent
        except Exception as failed:
            if (denied := denial(failed)) is not None:
                raise denied from failed
            if not is_silence(failed):
                raise
            raise TableCatalogSilent(table=self.name, problem=str(failed)) from failed
