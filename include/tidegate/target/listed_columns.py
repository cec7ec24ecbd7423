"""The columns of a target as a metastore lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.errors import ColumnUnlistable
from tidegate.metastore.hive_types import MOST_DIGITS, nested
from tidegate.model.metastore import ListedColumn, TableColumns
from tidegate.model.partition import Transform
from tidegate.model.partition_value import INTERVALS, value_format

if TYPE_CHECKING:
    from tidegate.config import TargetConfig
    from tidegate.model.partition import PartitionField

_PLAIN = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    # As Spark reads them: the next larger type with a sign.
    pa.uint8(): "smallint",
    pa.uint16(): "int",
    pa.uint32(): "bigint",
    pa.uint64(): "decimal(20,0)",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
}
_FAMILIES = {
    "string": (pa.types.is_string, pa.types.is_large_string),
    "binary": (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary),
    "timestamp": (pa.types.is_timestamp,),
}
_DATE = "%Y-%m-%d"
_OF_KEYS = frozenset({"boolean", "tinyint", "smallint", "int", "bigint", "date", "string"})
"""Types whose values readers find by the texts of directories."""


def listed_columns(target: TargetConfig, files: pa.Schema, source: pa.Schema) -> TableColumns:
    """Return the columns of a table, with their names in lower case, as in Hive.

    Args:
        target: names the keys.
        files: the columns of the part files.
        source: has the columns that keys are made from.

    Raises:
        ColumnUnlistable: Hive has no such type, or two columns have the same name.
    """
    table = target.metastore.table if target.metastore else ""
    keys = [ListedColumn(field.name.lower(), _key_type(field, target, source)) for field in
            target.partition_by]  # fmt: skip
    columns: list[ListedColumn] = []
    for field in files:
        kind = hive_type(field.type)
        if kind is None:
            problem = f"Hive has no type for {field.type}"
            raise ColumnUnlistable(table=table, column=field.name, problem=problem)
        if field.name.lower() in {column.name for column in (*keys, *columns)}:
            problem = (
                "another column or a partition key has its name, which Hive reads without case"
            )
            raise ColumnUnlistable(table=table, column=field.name, problem=problem)
        columns.append(ListedColumn(field.name.lower(), kind))
    return TableColumns(tuple(columns), tuple(keys))


def _key_type(field: PartitionField, target: TargetConfig, source: pa.Schema) -> str:
    if field.transform in INTERVALS:
        return "date" if value_format(field, target.partition_by) == _DATE else "string"
    if field.transform is Transform.STATIC or field.column not in source.names:
        return "string"
    kind = hive_type(source.field(field.column).type)
    return kind if kind in _OF_KEYS else "string"


def hive_type(kind: pa.DataType) -> str | None:
    """Return the name of a type; None if Hive has no such type."""
    types = pa.types
    if types.is_decimal(kind):
        most = kind.precision <= MOST_DIGITS
        return f"decimal({kind.precision},{kind.scale})" if most else None
    if types.is_struct(kind):
        fields = [(field.name, hive_type(field.type)) for field in kind]
        return nested("struct", [known and f"{name}:{known}" for name, known in fields])
    if types.is_map(kind):
        return nested("map", [hive_type(kind.key_type), hive_type(kind.item_type)])
    if types.is_list(kind) or types.is_large_list(kind):
        return nested("array", [hive_type(kind.value_type)])
    named = (name for name, is_one in _FAMILIES.items() if any(test(kind) for test in is_one))
    return _PLAIN.get(kind) or next(named, None)
