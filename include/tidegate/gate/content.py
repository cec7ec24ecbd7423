"""Read a partition as it would be published: sizes from footers, then only the needed columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.errors import ContentUnreadable
from tidegate.storage import silence_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tidegate.model.partition import Partition

_LEAST_VALUE_BYTES = 8
"""The least memory that pandas needs for a value, however well the file packs it."""


Unify = Callable[[Iterable[tuple[str, pa.Schema]]], pa.Schema]
"""(path, schema) of each file → the common schema that a reader of the table uses."""


@dataclass(frozen=True)
class GateInput:
    """A partition as it would stand after this commit: every file, published or still staged."""

    partition: Partition
    files: tuple[str, ...]
    """The current paths of the Parquet files, in window order."""
    unify: Unify
    """How the target merges schemas that differ."""
    planned: Callable[[], Iterable[pa.Schema]] = tuple
    """Returns the columns planned for the partition, newest first; called if it has no files."""


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
        with _open(path) as file:
            rows += file.metadata.num_rows
            _add_weights(weights, file.metadata)
            own[path] = file.schema_arrow
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
        for field in schema:
            if pa.types.is_null(types.get(field.name, pa.null())):
                types[field.name] = field.type
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
    fields = [footers.schema.field(name) for name in columns if name in footers.schema.names]
    schema = pa.schema(fields)
    tables = [schema.empty_table()]
    for path in content.files:
        with _open(path) as file:
            present = [name for name in schema.names if name in file.schema_arrow.names]
            table = file.read(columns=present)
            for field in schema:
                if field.name not in present:
                    table = table.append_column(field, pa.nulls(table.num_rows, field.type))
            tables.append(table.select(schema.names).cast(schema))
    table = pa.concat_tables(tables) if schema.names else _no_columns(footers.rows)
    for name, text in constants(content, footers, columns).items():
        table = table.append_column(name, pa.repeat(pa.scalar(text, pa.string()), footers.rows))
    return table


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


def _add_weights(weights: dict[str, int], metadata: Any) -> None:
    # A name may have dots itself, so that the paths of the leaves do not tell their columns.
    columns = metadata.schema.to_arrow_schema()
    names = [column.name for column in columns for _ in range(_leaves(column.type))]
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for position, name in enumerate(names):
            chunk = group.column(position)
            least = chunk.num_values * _LEAST_VALUE_BYTES
            weights[name] = weights.get(name, 0) + max(chunk.total_uncompressed_size, least)


def _leaves(kind: pa.DataType) -> int:
    """Return how many columns a Parquet file has for a type."""
    return sum(_leaves(kind.field(at).type) for at in range(kind.num_fields)) or 1


@contextmanager
def _open(path: str) -> Iterator[pq.ParquetFile]:
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except (OSError, pa.ArrowException) as broken:
        raise (
            silence_of(path, broken) or ContentUnreadable(path=path, problem=str(broken).strip())
        ) from broken
