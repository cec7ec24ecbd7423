"""The data files of one partition: as a table lists them, and as new ones are described to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from pyiceberg.expressions import AlwaysTrue, And, EqualTo, IsNull, Reference
from pyiceberg.expressions.literals import literal
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionFieldValue, PartitionKey

from tidegate.errors import TargetTableDiffers
from tidegate.metastore.agreement import place

if TYPE_CHECKING:
    from typing import Any

    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

    from tidegate.model.partition import Partition


@dataclass(frozen=True)
class ListedFile:
    """A data file as a snapshot has it."""

    entry: DataFile | None
    """None: the library cannot read what deletes rows of it."""
    is_whole: bool
    """Whether no rows of it are deleted; Tidegate deletes none."""


def listed(table: Table, snapshot: int | None, partition: Partition) -> dict[str, ListedFile]:
    """List the data files that a snapshot has of a partition: where each is → what it is."""
    if snapshot is None:
        return {}
    scan = table.scan(row_filter=_rows_of(partition, table.metadata), snapshot_id=snapshot)
    try:
        tasks = list(scan.plan_files())
    except ValueError as refused:
        # The library refuses equality deletes, which name no file.
        if "equality delete" not in str(refused):
            raise
        return {"files with rows deleted by key": ListedFile(None, is_whole=False)}
    return {
        place(task.file.file_path): ListedFile(task.file, is_whole=not task.delete_files)
        for task in tasks
    }


def described(table: Table, metadata: TableMetadata, path: str, partition: Partition) -> DataFile:
    """Describe a Parquet file to a table, with the metrics that its footer has.

    Args:
        table: opens the file as readers will.
        metadata: of the table as it will be, which has the file's columns.
        path: of the file.
        partition: whose rows it has; its keys need not be columns of the file.
    """
    schema, spec = metadata.schema(), metadata.spec()
    file = table.io.new_input(path)
    with file.open() as stream:
        footer = pq.read_metadata(stream)
    statistics = data_file_statistics_from_parquet_metadata(
        footer,
        compute_statistics_plan(schema, metadata.properties),
        parquet_path_to_id_mapping(schema),
    )
    values = _typed(partition, metadata)
    keys = [PartitionFieldValue(field, values[field.name]) for field in spec.fields]
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=PartitionKey(keys, spec, schema).partition,
        file_size_in_bytes=len(file),
        sort_order_id=None,
        spec_id=spec.spec_id,
        equality_ids=None,
        key_metadata=None,
        **statistics.to_serialized_dict(),
    )


def _rows_of(partition: Partition, metadata: TableMetadata) -> BooleanExpression:
    found: BooleanExpression = AlwaysTrue()
    for name, value in _typed(partition, metadata).items():
        term = Reference(name)
        is_it = IsNull(term=term) if value is None else EqualTo(term=term, value=literal(value))
        found = And(found, is_it)
    return found


def _typed(partition: Partition, metadata: TableMetadata) -> dict[str, Any]:
    """Return a partition's values as the types of the table's columns have them."""
    found = {}
    for name, text in partition.values:
        try:
            kind = metadata.schema().find_field(name).field_type
        except ValueError as unknown:
            raise TargetTableDiffers(
                table=metadata.location,
                part=f"partition key '{name}'",
                expected="a column of that name",
                found=", ".join(metadata.schema().column_names),
            ) from unknown
        try:
            found[name] = None if text is None else literal(text).to(kind).value
        except (TypeError, ValueError) as unfit:
            raise TargetTableDiffers(
                table=metadata.location,
                part=f"partition key '{name}'",
                expected=f"a type with the value '{text}'",
                found=str(kind),
            ) from unfit
    return found
