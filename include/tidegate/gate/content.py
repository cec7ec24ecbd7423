"""Read a partition as it would be published: sizes from footers, then only the needed columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.errors import ContentUnreadable
from tidegate.storage import silence_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tidegate.model.partition import Partition
    from tidegate.physical.parts import PartFiles, PartRows

Unify = Callable[[Iterable[tuple[str, pa.Schema]]], pa.Schema]
"""(path, schema) of each file → the common schema that a reader of the table uses."""


def _parquet_files() -> PartFiles:
    # With the formats comes polars, which most of what imports the gate does not need.
    found: PartFiles = import_module("tidegate.physical.parts").PartFiles()
    return found


@dataclass(frozen=True)
class GateInput:
    """A partition as it would stand after this commit: every file, published or still staged."""

    partition: Partition
    files: tuple[str, ...]
    """The current paths of the files, in window order."""
    unify: Unify
    """How the target merges schemas that differ."""
    planned: Callable[[], Iterable[pa.Schema]] = tuple
    """Returns the columns planned for the partition, newest first; called if it has no files."""
    parts: PartFiles = field(default_factory=_parquet_files)
    """Opens the files."""


@dataclass(frozen=True)
class Footers:
    """The combined content of all files' footers."""

    rows: int
    schema: pa.Schema
    """Every column of any file; a file without one has NULLs there."""
    column_bytes: Mapping[str, int]
    """Top-level column → the least memory of its values, in bytes."""
    own: Mapping[str, pa.Schema]
    """File → its own columns."""


def read_footers(content: GateInput) -> Footers:
    """Read how many rows the partition has and how much its columns weigh.

    Raises:
        ContentUnreadable: a file is missing or damaged.
        ColumnTypesDiffer: two files have types of one column without a common type.
    """
    rows = 0
    weights: dict[str, int] = {}
    own: dict[str, pa.Schema] = {}
    for path in content.files:
        with _open(content.parts, path) as file:
            rows += file.rows
            for name, weight in file.column_bytes.items():
                weights[name] = weights.get(name, 0) + weight
            own[path] = file.schema
    # Without dictionaries, too, because pandas categories compare differently.
    return Footers(rows, content.unify(own.items()), weights, own)


def empty_footers(content: GateInput, columns: Iterable[str]) -> Footers:
    """Return what takes the place of footers for a partition without files.

    Args:
        content: the partition, and the columns planned for it; the first known type counts.
        columns: the columns that a suite names; unplanned ones have no type. The partition's keys
            are not columns of its files.
    """
    types: dict[str, pa.DataType] = {}
    for schema in content.planned():
        for column in schema:
            if pa.types.is_null(types.get(column.name, pa.null())):
                types[column.name] = column.type
    keys = {name for name, _ in content.partition.values}
    for name in sorted(set(columns) - keys):
        types.setdefault(name, pa.null())
    return Footers(0, pa.schema(list(types.items())), {}, {})


def read_columns(content: GateInput, footers: Footers, columns: Iterable[str]) -> pa.Table:
    """Read some columns of all files as one table; the other columns stay untouched on disk.

    Args:
        content: the files, and the partition, whose values become columns unless the files have
            them.
        footers: the result of `read_footers` for the same content.
        columns: names from the files or from the partition.
    """
    read = reader(content.parts, footers, columns)
    schema = read.schema
    batches = [batch for path in content.files for batch in read(path)] if schema.names else []
    table = pa.Table.from_batches(batches, schema)
    if not schema.names:
        table = _no_columns(footers.rows)
    for name, text in constants(content, footers, columns).items():
        table = table.append_column(name, pa.repeat(pa.scalar(text, pa.string()), footers.rows))
    return table


@dataclass(frozen=True, eq=False)
class UnifiedRows:
    """Reads some columns of files of which each may lack some; can be sent to other processes."""

    parts: PartFiles
    schema: pa.Schema
    """The columns, with the types that all files share."""

    def __call__(self, path: str) -> Iterator[pa.RecordBatch]:
        """Read a file; a column that it does not have is NULL.

        Raises:
            ContentUnreadable: it is missing or damaged.
        """
        with _open(self.parts, path) as file:
            present = [name for name in self.schema.names if name in file.schema.names]
            for batch in file.batches(present):
                columns = [
                    batch.column(wanted.name).cast(wanted.type)
                    if wanted.name in present
                    else pa.nulls(batch.num_rows, wanted.type)
                    for wanted in self.schema
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


def reader(parts: PartFiles, footers: Footers, columns: Iterable[str]) -> UnifiedRows:
    """Return what reads some columns of any of the files.

    Args:
        parts: opens the files.
        footers: the result of `read_footers` for them.
        columns: names; those that no file has are left out.
    """
    fields = [footers.schema.field(name) for name in columns if name in footers.schema.names]
    return UnifiedRows(parts, pa.schema(fields))


def constants(
    content: GateInput, footers: Footers, columns: Iterable[str]
) -> dict[str, str | None]:
    """Return the wanted columns that every row has from its partition's path, not from its file."""
    wanted = set(columns)
    return {
        name: text
        for name, text in content.partition.values
        if name in wanted and name not in footers.schema.names
    }


def table_schema(content: GateInput, footers: Footers) -> pa.Schema:
    """Return all columns as a reader of the table sees them."""
    names = footers.schema.names
    added = [
        pa.field(name, pa.string()) for name, _ in content.partition.values if name not in names
    ]
    return pa.schema([*footers.schema, *added])


def _no_columns(rows: int) -> pa.Table:
    # Only this way does a table without columns keep its number of rows.
    return pa.table({"": pa.nulls(rows)}).drop_columns([""])


@contextmanager
def _open(parts: PartFiles, path: str) -> Iterator[PartRows]:
    try:
        with parts(path) as file:
            yield file
    except (OSError, pa.ArrowException) as broken:
        problem = str(broken).strip()
        unreadable = ContentUnreadable(path=path, window="WINDOW", problem=problem)
        raise (silence_of(path, broken) or unreadable) from broken
