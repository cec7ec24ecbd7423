"""The columns of a folder: those of all its files, with types as which every file can be read.

A new file may add columns and widen types, but removes nothing (PC-R02).
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.physical.int96 import is_zoneless
from tidegate.source.column_kernels import Wanted
from tidegate.source.files.partition_values import arrow_type
from tidegate.source.promotion import cast_to

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


_UNITS = ("s", "ms", "us", "ns")


def joined(known: pa.Schema, files: Iterable[pa.Schema]) -> pa.Schema:
    """Add the columns of files to the known ones, in the order in which they appear.

    If neither of two types can be read as the other, the known one stays; the file that differs is
    reported when its rows are planned.

    Args:
        known: an earlier result of this function; empty at the beginning.
        files: the schemas of the files.
    """
    columns = {column.name: column.type for column in known}
    for schema in files:
        for column in schema:
            before = columns.get(column.name)
            columns[column.name] = wanted(column).type if before is None else _wider(before, column)
    return pa.schema(columns.items())


def _wider(known: pa.DataType, found: pa.Field) -> pa.DataType:
    """Return the type as which columns of both types can be read."""
    kind, types = _plain(found.type), pa.types
    if types.is_struct(known) and types.is_struct(kind):
        children = joined(pa.schema(list(known)), [pa.schema(list(kind))])
        return pa.struct(list(children))
    if types.is_map(known) and types.is_map(kind):
        key, item = _wider(known.key_type, kind.key_field), _wider(known.item_type, kind.item_field)
        return pa.map_(key, item)
    if _is_list(known) and _is_list(kind):
        return pa.list_(pa.field("element", _wider(known.value_type, kind.value_field)))
    if types.is_temporal(known) and types.is_temporal(kind):
        return _wider_time(known, found, kind)
    if kind == known or types.is_null(kind) or cast_to(kind, known, zoneless=is_zoneless(found)):
        return known
    return wanted(found).type if cast_to(known, kind) is not None else known


def _wider_time(known: pa.DataType, found: pa.Field, kind: pa.DataType) -> pa.DataType:
    """Return one of two types that can be read as each other: the finer one that has all years.

    Nanoseconds end in 2262, so a column has them only if it had them from the beginning.
    """
    zoneless = is_zoneless(found)
    if cast_to(kind, known, zoneless=zoneless) is None and cast_to(known, kind) is None:
        return known
    if pa.types.is_time(known):
        return max(known, kind, key=lambda each: _UNITS.index(each.unit))
    if not pa.types.is_timestamp(kind) or zoneless:
        return known
    unit = min("us", kind.unit, key=_UNITS.index)
    if pa.types.is_timestamp(known):
        unit = max(unit, known.unit, key=_UNITS.index)
        return pa.timestamp(unit, known.tz)
    return pa.timestamp(unit, kind.tz)


def table_schema(own: pa.Schema, keys: Mapping[str, str]) -> pa.Schema:
    """Return the columns of a table whose files have these: own ones, then keys (PC-R02)."""
    columns = [column for column in own if column.name not in keys]
    return pa.schema(columns + [pa.field(name, arrow_type(kind)) for name, kind in keys.items()])


def encode_schema(schema: pa.Schema) -> str:
    """Return a schema as text, for a pin or a listing."""
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def decode_schema(text: str) -> pa.Schema:
    """Read the result of `encode_schema`."""
    return pa.ipc.read_schema(pa.BufferReader(base64.b64decode(text)))


def wanted(column: pa.Field) -> Wanted:
    """Return a column without dictionaries and nullability, which differ between files."""
    kind = _plain(column.type)
    children: tuple[Wanted, ...] = tuple(wanted(child) for child in children_of(kind))
    if pa.types.is_struct(kind):
        kind = pa.struct([pa.field(child.name, child.type) for child in children])
    elif pa.types.is_map(kind):
        kind = pa.map_(children[0].type, children[1].type)
    elif children:
        kind = pa.list_(pa.field("element", children[0].type))
    return Wanted(column.name, column.name, kind, children)


def children_of(kind: pa.DataType) -> list[pa.Field]:
    """Return the fields of a nested type, with names that are the same in every file."""
    if pa.types.is_struct(kind):
        return list(kind)
    if pa.types.is_map(kind):
        return [kind.key_field.with_name("key"), kind.item_field.with_name("value")]
    return [kind.value_field.with_name("element")] if _is_list(kind) else []


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_list(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))
