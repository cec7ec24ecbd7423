"""Give rows the partition that their folder says (HUDI-R9)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from tidegate.source.hudi.table.partition_values import partition_values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidegate.source.hudi.table.properties import TableProperties

SomeRows = TypeVar("SomeRows", pa.Table, pa.RecordBatch)


class FolderValues:
    """The partition columns of rows, by folder, where whole partitions are replaced.

    With a global index that does not move updated rows, a row's own value may be that of another
    partition, which is not read when this one changes: the row would stay there for ever.

    Args:
        schema: the table's columns.
        table: its properties.
    """

    def __init__(self, schema: pa.Schema, table: TableProperties) -> None:
        self._schema = schema
        self._table = table
        self._of = lru_cache(self._values_of)

    def given(self, rows: SomeRows, folder: str) -> SomeRows:
        """Return rows with those of the partition columns that they have as their folder says.

        Args:
            rows: all of one folder.
            folder: below the table.

        Raises:
            HudiPartitionUnreadable: see `partition_values`.
        """
        for name, value in self._of(folder).items():
            place = rows.schema.get_field_index(name)
            if place >= 0:
                field = rows.schema.field(place)
                rows = rows.set_column(place, field, pa.repeat(value.cast(field.type), len(rows)))
        return rows

    def _values_of(self, folder: str) -> Mapping[str, pa.Scalar]:
        (values,) = partition_values(self._table, self._schema, [folder])
        return values
