"""The columns of a target as an Iceberg table has them: those of the files, then the keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.errors import TableColumnUnfit
from tidegate.model.partition import Transform
from tidegate.model.partition_value import INTERVALS
from tidegate.target.schema import plain

if TYPE_CHECKING:
    from tidegate.config import TargetConfig
    from tidegate.model.partition import PartitionField

_OF_KEYS = (pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.date32())
"""Types whose values an Iceberg table reads from the texts of partitions as they are."""


def table_columns(target: TargetConfig, files: pa.Schema, source: pa.Schema) -> pa.Schema:
    """Return the columns of a table.

    Args:
        target: names the table and its keys.
        files: the columns of the part files.
        source: has the columns that keys are made from.

    Raises:
        TableColumnUnfit: Iceberg has no such type, or two columns have the same name.
    """
    fields = [
        *(pa.field(field.name, plain(field.type)) for field in files),
        *(pa.field(field.name, _key_type(field, source)) for field in target.partition_by),
    ]
    names = [field.name.lower() for field in fields]
    for field in fields:
        if names.count(field.name.lower()) > 1:
            # Spark reads names without case.
            problem = "another column or a partition key has its name"
        elif pa.types.is_unsigned_integer(field.type):
            problem = f"{field.type} has no sign, which Iceberg's numbers have"
        else:
            continue
        raise TableColumnUnfit(table=str(target.table), column=field.name, problem=problem)
    return pa.schema(fields)


def _key_type(field: PartitionField, source: pa.Schema) -> pa.DataType:
    made = field.transform in INTERVALS or field.transform is Transform.STATIC
    if made or field.column not in source.names:
        return pa.string()
    kind = source.field(field.column).type
    return kind if kind in _OF_KEYS else pa.string()
