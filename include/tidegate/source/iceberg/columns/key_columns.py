"""The columns of equality deletes: found in any schema, at any depth of structs (ICE-4.8)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import DoubleType, FloatType, NestedField, PrimitiveType, StructType

from tidegate.errors import CorruptDeletes, UnsupportedFeature
from tidegate.source.iceberg.columns.columns import wanted_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.source.column_kernels import Wanted
    from tidegate.source.iceberg.columns.selection import Selection


@dataclass(frozen=True)
class KeyColumn:
    """One column of an equality key."""

    field_id: int
    name: str
    """Of the column in conformed batches."""
    hidden: bool
    """Whether it is only needed for the key."""
    root: Wanted
    """The top-level column that contains it, without other nested fields."""
    type: pa.DataType

    def of(self, array: pa.Array) -> pa.Array:
        """Take the column out of its root; a field below a NULL struct is NULL."""
        while pa.types.is_struct(array.type):
            array = pc.struct_field(array, [0])
        return array


class KeyColumns:
    """The key columns of one table, for one read."""

    def __init__(self, source: str, selection: Selection, output: Sequence[Wanted]) -> None:
        """Prepare.

        Args:
            source: the table, for errors.
            selection: knows all schemas of the table.
            output: the columns of the result; a key among them is not read twice.
        """
        self._source = source
        self._selection = selection
        self._output = {column.key: column for column in output}
        self._names = {column.name for column in output}
        self._known: dict[int, KeyColumn] = {}

    def of(self, ids: Sequence[int], path: str) -> tuple[KeyColumn, ...]:
        """Return the columns of equality ids, in ascending order of ids.

        Args:
            ids: as a delete file has them.
            path: the delete file, for errors.

        Raises:
            CorruptDeletes: there are none, or one is not a primitive column of any schema.
            UnsupportedFeature: a key is a float or double.
        """
        if not ids:
            raise CorruptDeletes(path=path, expected="equality ids", found="none")
        for field_id in ids:
            if field_id not in self._known:
                self._known[field_id] = self._column(field_id, path)
        return tuple(self._known[field_id] for field_id in sorted(set(ids)))

    def _column(self, field_id: int, path: str) -> KeyColumn:
        fields = self._path_to(field_id, path)
        kind = fields[-1].field_type
        if not isinstance(kind, PrimitiveType):
            raise CorruptDeletes(path=path, expected="keys of primitive types", found=str(kind))
        if isinstance(kind, FloatType | DoubleType):
            feature = f"an equality delete with a key of type {kind} ({path})"
            raise UnsupportedFeature(source=self._source, feature=feature)
        root = _only(fields)
        leaf = root
        while leaf.children:
            leaf = leaf.children[0]
        visible = self._output.get(field_id)
        if visible is not None and visible.type == leaf.type:
            return KeyColumn(field_id, visible.name, False, root, leaf.type)
        return KeyColumn(field_id, self._free_name(field_id), True, root, leaf.type)

    def _path_to(self, field_id: int, path: str) -> list[NestedField]:
        # The newest schema that has it: types are only ever promoted.
        for schema in reversed(self._selection.schemas):
            found = _path(schema.fields, field_id)
            if found:
                return found
        raise CorruptDeletes(
            path=path, expected="equality ids of the table's columns", found=str(field_id)
        )

    def _free_name(self, field_id: int) -> str:
        name = f"equality key {field_id}"
        while name in self._names:
            name += "'"
        return name


def _path(fields: Sequence[NestedField], field_id: int) -> list[NestedField]:
    for field in fields:
        if field.field_id == field_id:
            return [field]
        if isinstance(field.field_type, StructType):
            rest = _path(field.field_type.fields, field_id)
            if rest:
                return [field, *rest]
    return []


def _only(fields: Sequence[NestedField]) -> Wanted:
    """Return the first of nested fields, each of which contains only the next; all are optional."""
    wanted = replace(wanted_column(fields[0]), required=False)
    if len(fields) == 1:
        return wanted
    child = _only(fields[1:])
    kind = pa.struct([pa.field(child.name, child.type)])
    return replace(wanted, type=kind, children=(child,), default=None)
