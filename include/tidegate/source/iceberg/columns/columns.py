"""Iceberg columns as Arrow: types, field ids, and values of columns that a file lacks."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

import pyarrow as pa
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from tidegate.physical.int96 import is_zoneless
from tidegate.physical.protocol import FIELD_ID
from tidegate.source.column_kernels import Found, Wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table.name_mapping import MappedField


def wanted_columns(schema: Schema) -> tuple[Wanted, ...]:
    """Return the wanted columns, with field ids as keys (ICE-6.12)."""
    return tuple(wanted_column(field) for field in schema.fields)


def wanted_column(field: NestedField) -> Wanted:
    """Return one column, or one nested field."""
    kind = field.field_type
    children: tuple[Wanted, ...] = ()
    if isinstance(kind, StructType):
        children = tuple(wanted_column(child) for child in kind.fields)
        arrow: pa.DataType = pa.struct([pa.field(child.name, child.type) for child in children])
    elif isinstance(kind, ListType):
        children = (wanted_column(kind.element_field),)
        arrow = pa.list_(pa.field("element", children[0].type))
    elif isinstance(kind, MapType):
        children = (wanted_column(kind.key_field), wanted_column(kind.value_field))
        arrow = pa.map_(children[0].type, children[1].type)
    else:
        arrow = _primitive(kind)
    return Wanted(
        field.field_id, field.name, arrow, children, field.initial_default, field.required
    )


def _primitive(kind: IcebergType) -> pa.DataType:
    # pyiceberg uses large types everywhere; Parquet is read with plain ones, which should not be
    # copied.
    arrow = cast("pa.DataType", schema_to_pyarrow(kind))
    return {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}.get(arrow, arrow)


def has_field_ids(schema: pa.Schema) -> bool:
    """Return whether a file carries field ids (ICE-6.14)."""
    return any(field_id(field) is not None for field in schema)


def found_by_id(schema: pa.Schema) -> tuple[Found, ...]:
    """Return a file's columns with their field ids as keys."""
    return tuple(_found_by_id(field) for field in schema)


def field_id(field: pa.Field) -> int | None:
    """Return the field id of a file's column, if it has one."""
    text = (field.metadata or {}).get(FIELD_ID)
    return int(text) if text is not None else None


def _found_by_id(field: pa.Field) -> Found:
    children = tuple(_found_by_id(child) for child in _children(field.type))
    return Found(field_id(field), field.name, field.type, children, is_zoneless(field))


def found_by_name(schema: pa.Schema, mapping: Sequence[MappedField]) -> tuple[Found, ...]:
    """Return a file's columns with the ids of a name mapping; others are ignored (ICE-6.14)."""
    return tuple(_found_by_name(field, mapping, field.name) for field in schema)


def _found_by_name(field: pa.Field, mapping: Sequence[MappedField], name: str) -> Found:
    mapped = next((entry for entry in mapping if name in entry.names), None)
    # `is not None`: a mapped field without children is falsy.
    inner = mapped.fields if mapped is not None else ()
    names = _child_names(field.type)
    children = tuple(
        _found_by_name(child, inner, child_name)
        for child, child_name in zip(_children(field.type), names, strict=True)
    )
    key = mapped.field_id if mapped is not None else None
    return Found(key, field.name, field.type, children, is_zoneless(field))


def _children(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_struct(kind):
        return list(kind)
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [kind.value_field]
    return []


def _child_names(kind: pa.DataType) -> list[str]:
    # A name mapping uses these names for the children of lists and maps, whatever the file's names.
    if pa.types.is_map(kind):
        return ["key", "value"]
    if pa.types.is_struct(kind):
        return [child.name for child in kind]
    return ["element"] * len(_children(kind))


class IdentityValues:
    """Reads identity partition values, JSON-ready, by the id of their column (ICE-6.13)."""

    def __init__(self, specs: Mapping[int, PartitionSpec]) -> None:
        self._parts = {
            spec_id: [
                (place, str(part.source_id))
                for place, part in enumerate(spec.fields)
                if isinstance(part.transform, IdentityTransform)
            ]
            for spec_id, spec in specs.items()
        }

    def of(self, spec_id: int, partition: Sequence[Any]) -> dict[str, Any]:
        """Return the values of a file."""
        return {
            source_id: _to_json(partition[place])
            for place, source_id in self._parts[spec_id]
            if place < len(partition)
        }


def constants(values: Mapping[str, Any], wanted: Sequence[Wanted]) -> dict[int, pa.Scalar]:
    """Return the result of `IdentityValues` as Arrow scalars by field id."""
    kinds = _leaf_types(wanted)
    return {
        int(field_id): _scalar(value, kinds[int(field_id)])
        for field_id, value in values.items()
        if int(field_id) in kinds
    }


def _leaf_types(wanted: Sequence[Wanted]) -> dict[int, pa.DataType]:
    found: dict[int, pa.DataType] = {}
    for column in wanted:
        if pa.types.is_struct(column.type):
            found |= _leaf_types(column.children)
        found[cast("int", column.key)] = column.type
    return found


def _to_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float | Decimal | UUID):
        return str(value)
    return value


def _scalar(value: Any, kind: pa.DataType) -> pa.Scalar:
    """Undo `_to_json`: times and dates are counts since 1970, as in Avro."""
    if value is None:
        return pa.scalar(None, kind)
    if pa.types.is_date32(kind):
        return pa.scalar(value, pa.int32()).cast(kind)
    for is_kind, read in _READ_JSON:
        if is_kind(kind):
            return pa.scalar(read(value), kind)
    return pa.scalar(value, kind)


_READ_JSON: tuple[tuple[Callable[[pa.DataType], bool], Callable[[str], Any]], ...] = (
    (pa.types.is_binary, bytes.fromhex),
    (pa.types.is_fixed_size_binary, bytes.fromhex),
    (lambda kind: isinstance(kind, pa.UuidType), lambda text: UUID(text).bytes),
    (pa.types.is_floating, float),
    (pa.types.is_decimal, Decimal),
)
