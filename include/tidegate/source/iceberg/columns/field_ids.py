"""Assign field ids to the columns of files: their own, or those of names (ICE-6.12, 6.14)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pyiceberg.table.name_mapping import create_mapping_from_schema

from tidegate.errors import MissingFieldIds
from tidegate.source.iceberg.columns.columns import found_by_id, found_by_name, has_field_ids
from tidegate.source.iceberg.columns.name_mapping import parse_mapping

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyiceberg.table.name_mapping import MappedField

    from tidegate.source.column_kernels import Found
    from tidegate.source.iceberg.columns.selection import Selection


@dataclass(frozen=True)
class FieldIds:
    """The field ids of a table for files without their own."""

    source: str
    selection: Selection
    assume_names: bool = False
    """Without a mapping, columns are matched by the table's current names (ICE-6.14)."""

    def found(self, schema: pa.Schema, path: str) -> Sequence[Found]:
        """Return a file's columns with their ids; those that have none are ignored.

        Raises:
            MissingFieldIds: neither the file nor a mapping has ids.
        """
        if not len(schema) or has_field_ids(schema):
            return found_by_id(schema)
        mapping = self._mapping
        if mapping is None:
            raise MissingFieldIds(path=path)
        return found_by_name(schema, mapping)

    @cached_property
    def _mapping(self) -> list[MappedField] | None:
        if self.selection.name_mapping is None:
            return self._assumed if self.assume_names else None
        return parse_mapping(self.selection.name_mapping, self.source)

    @property
    def _assumed(self) -> list[MappedField]:
        return list(create_mapping_from_schema(self.selection.schemas[-1]).root)
