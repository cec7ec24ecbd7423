"""Make the rows of deletes: the values of key and partition columns, the time, and nothing else."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.errors import HudiPartitionUnreadable
from tidegate.model.row_kind import CHANGE_TYPE, RowKind
from tidegate.source.hudi.table.columns import COMMIT_TIME, KEY, PARTITION
from tidegate.source.hudi.table.partition_values import partition_values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidegate.source.hudi.table.columns import SliceColumns
    from tidegate.source.hudi.table.properties import TableProperties

_NULL, _EMPTY = "__null__", "__empty__"
"""What the writer puts into a key for NULL and for an empty text."""


class Tombstones:
    """Makes the rows of deletes of one table.

    Args:
        columns: of the result.
        table: its properties, which say how keys and folders are named.
    """

    def __init__(self, columns: SliceColumns, table: TableProperties) -> None:
        self._columns = columns
        self._table = table
        self._partition = lru_cache(self._values_of)

    def rows(self, partition: str, keys: pa.Array, times: pa.Array) -> pa.Table:
        """Return one row per key.

        Args:
            partition: the folder of the rows.
            keys: as the writer spells them.
            times: the requested times of the instants that deleted them.
        """
        known: dict[str, pa.Array] = {
            CHANGE_TYPE: pa.repeat(RowKind.DELETE.value, len(keys)),
            COMMIT_TIME: times,
            KEY: keys,
            PARTITION: pa.repeat(partition, len(keys)),
        }
        known |= {
            name: pa.repeat(value, len(keys)) for name, value in self._partition(partition).items()
        }
        known |= self._key_columns(keys)
        arrays = [
            known[column.name].cast(column.type)
            if column.name in known
            else pa.nulls(len(keys), column.type)
            for column in self._columns.schema
        ]
        return pa.Table.from_arrays(arrays, schema=self._columns.schema)

    def _values_of(self, partition: str) -> Mapping[str, pa.Scalar]:
        try:
            (values,) = partition_values(self._table, self._columns.table, [partition])
        except HudiPartitionUnreadable:
            return {}
        return values

    def _key_columns(self, keys: pa.Array) -> dict[str, pa.Array]:
        """Return the columns of keys that can be read from their texts."""
        names = self._table.key_fields
        texts: Mapping[str, pa.Array] = {names[0]: keys} if len(names) == 1 else {}
        pattern = "^" + ",".join(
            f"{re.escape(name)}:(?P<f{at}>.*)" for at, name in enumerate(names)
        )
        # A single column stands with its name, too, where the generator is made for several.
        parts = pc.extract_regex(keys, pattern=f"(?s){pattern}$") if names else keys
        if names and len(keys) and not parts.null_count:
            texts = {name: pc.struct_field(parts, f"f{at}") for at, name in enumerate(names)}
        found = {}
        for name, values in texts.items():
            column = self._columns.table.field(name)
            plain = pc.if_else(pc.equal(values, _NULL), None, values)
            plain = pc.if_else(pc.equal(plain, _EMPTY), "", plain)
            try:
                found[name] = plain.cast(column.type)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                continue
        return found
