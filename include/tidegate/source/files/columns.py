"""The columns of a folder: those of all its files, with types as which every file can be read.

A new file may add columns and widen types, but removes nothing (PC-R02).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.physical.int96 import is_zoneless
from tidegate.source.files.metadata import metadata_schema
from tidegate.source.files.partition_values import arrow_type
from tidegate.source.named_columns import is_list, plain_type, wanted_column
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
            columns[column.name] = (
                wanted_column(column).type if before is None else _wider(before, column)
            )
    return pa.schema(columns.items())


def _wider(known: pa.DataType, found: pa.Field) -> pa.DataType:
    """Return the type as which columns of both types can be read."""
    kind, types = plain_type(found.type), pa.types
    if types.is_struct(known) and types.is_struct(kind):
        children = joined(pa.schema(list(known)), [pa.schema(list(kind))])
        return pa.struct(list(children))
    if types.is_map(known) and types.is_map(kind):
        key, item = _wider(known.key_type, kind.key_field), _wider(known.item_type, kind.item_field)
        return pa.map_(key, item)
    if is_list(known) and is_list(kind):
        return pa.list_(pa.field("element", _wider(known.value_type, kind.value_field)))
    if types.is_temporal(known) and types.is_temporal(kind):
        return _wider_time(known, found, kind)
    if kind == known or types.is_null(kind) or cast_to(kind, known, zoneless=is_zoneless(found)):
        return known
    return wanted_column(found).type if cast_to(known, kind) is not None else known


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


def table_schema(own: pa.Schema, keys: Mapping[str, str], metadata: Mapping[str, str]) -> pa.Schema:
    """Return the columns of a table whose files have these: own ones, then keys (PC-R02).

    Args:
        own: the columns of the files.
        keys: the partition keys of the directories, with their types.
        metadata: the columns about files, which are the last ones.
    """
    columns = [column for column in own if column.name not in {*keys, *metadata}]
    columns += [pa.field(name, arrow_type(kind)) for name, kind in keys.items()]
    return pa.schema([*columns, *metadata_schema(metadata)])
