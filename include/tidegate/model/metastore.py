"""Tables and partitions as a metastore lists them."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.model.wire import Value


@dataclass(frozen=True)
class ListedColumn(Value):
    """A column, with its type as Hive writes it: `bigint`, `struct<a:int>`."""

    name: str
    type: str


@dataclass(frozen=True)
class TableColumns(Value):
    """The columns of a table whose files lie in directories of its partitions."""

    columns: tuple[ListedColumn, ...]
    """Those of the files."""
    keys: tuple[ListedColumn, ...]
    """Those of the directories."""


@dataclass(frozen=True)
class ListedTable:
    """A table that readers find by its name."""

    columns: TableColumns
    location: str
    """Its directory, as a path or an address."""
    format: str
    """`parquet` or `orc`; else what the metastore calls it."""
    pipeline: str | None
    """The pipeline that made it; None: somebody else did."""
    keeps_files: bool = True
    """Whether the files of a partition stay when it is taken off the list."""


@dataclass(frozen=True)
class ListedPartition:
    """A partition that readers find in the list of its table."""

    values: tuple[str, ...]
    """One per key of the table; `__HIVE_DEFAULT_PARTITION__` for NULL."""
    location: str
    revision: int | None
    """The revision that it was listed for; None: somebody else listed it, or the metastore has no
    place for it (`Metastore.keeps_properties`), nor for what follows."""
    key: str | None = None
    """Identifies the commit that listed it."""
    files: int = 0
    rows: int = 0
    size_bytes: int = 0
