"""The values of the partition columns, from the names of a table's folders. Opens nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa

from tidegate.errors import HudiPartitionUnreadable
from tidegate.model.partition import HIVE_DEFAULT_NAME
from tidegate.physical.arrays import text_scalar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tidegate.source.hudi.table.properties import TableProperties


def partition_values(
    table: TableProperties, schema: pa.Schema, folders: Iterable[str]
) -> tuple[Mapping[str, pa.Scalar], ...]:
    """Return the values of the partition columns for each folder.

    Args:
        table: the properties.
        schema: the table's columns.
        folders: below the table.

    Raises:
        HudiPartitionUnreadable: a folder's name does not have the value of each column.
    """
    columns = [schema.field(name) for name in table.partition_fields]
    return tuple(_values(table, columns, folder) for folder in folders)


def _values(
    table: TableProperties, columns: Sequence[pa.Field], folder: str
) -> Mapping[str, pa.Scalar]:
    if table.formats_folders is not None:
        said = f"`{table.formats_folders}: {table.raw[table.formats_folders]}`"
        expected = f"the values of the partition columns as they are, found {said}"
        raise HudiPartitionUnreadable(source=table.source, folder=folder, expected=expected)
    # Only several columns are told apart by slashes: a single one may have them in its values.
    parts = folder.split("/") if len(columns) > 1 else [folder][: len(columns)]
    if len(parts) != len(columns):
        names = ", ".join(column.name for column in columns)
        expected = f"{len(columns)} folders, for {names}"
        raise HudiPartitionUnreadable(source=table.source, folder=folder, expected=expected)
    return {
        column.name: _value(table, folder, column, part)
        for column, part in zip(columns, parts, strict=True)
    }


def _value(table: TableProperties, folder: str, column: pa.Field, part: str) -> pa.Scalar:
    prefix = f"{column.name}=" if table.has_hive_folders else ""
    if part.startswith(prefix) and _has_one_text(column.type):
        text = part.removeprefix(prefix)
        text = unquote(text) if table.encodes_folders else text
        try:
            if text == HIVE_DEFAULT_NAME:
                return pa.nulls(1, column.type)[0]
            return text_scalar(text).cast(column.type)
        except pa.ArrowInvalid:
            pass
    expected = f"`{prefix}` and a value of type {column.type} for the column '{column.name}'"
    raise HudiPartitionUnreadable(source=table.source, folder=folder, expected=expected)


def _has_one_text(kind: pa.DataType) -> bool:
    """Return whether each value of a type is written in one way only; times and floats are not."""
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    is_exact = pa.types.is_integer(kind) or pa.types.is_decimal(kind)
    return bool(is_text or is_exact or pa.types.is_date(kind) or pa.types.is_boolean(kind))
