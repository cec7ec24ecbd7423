"""Match the columns of files to those of a table by their names, at every depth."""

from __future__ import annotations

import base64

import pyarrow as pa

from tidegate.physical.int96 import is_zoneless
from tidegate.source.column_kernels import Found, Wanted


def encode_schema(schema: pa.Schema) -> str:
    """Return a schema as text, for a pin or a listing."""
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def decode_schema(text: str) -> pa.Schema:
    """Read the result of `encode_schema`."""
    return pa.ipc.read_schema(pa.BufferReader(base64.b64decode(text)))


def wanted_column(column: pa.Field) -> Wanted:
    """Return a column without dictionaries and nullability, which differ between files."""
    kind = plain_type(column.type)
    children: tuple[Wanted, ...] = tuple(wanted_column(child) for child in children_of(kind))
    if pa.types.is_struct(kind):
        kind = pa.struct([pa.field(child.name, child.type) for child in children])
    elif pa.types.is_map(kind):
        kind = pa.map_(children[0].type, children[1].type)
    elif children:
        kind = pa.list_(pa.field("element", children[0].type))
    return Wanted(column.name, column.name, kind, children)


def found_column(column: pa.Field) -> Found:
    """Return a column of a file, which has the name as its key."""
    children = tuple(found_column(child) for child in children_of(column.type))
    return Found(column.name, column.name, column.type, children, is_zoneless(column))


def children_of(kind: pa.DataType) -> list[pa.Field]:
    """Return the fields of a nested type, with names that are the same in every file."""
    if pa.types.is_struct(kind):
        return list(kind)
    if pa.types.is_map(kind):
        return [kind.key_field.with_name("key"), kind.item_field.with_name("value")]
    return [kind.value_field.with_name("element")] if is_list(kind) else []


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values of dictionaries; any other type as it is."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def is_list(kind: pa.DataType) -> bool:
    """Return whether a type is one of Arrow's lists."""
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))
