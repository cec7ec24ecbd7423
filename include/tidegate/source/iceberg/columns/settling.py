"""What settling needs from one table: columns, keys, and whether there are row ids (ICE-3.15).

Columns that are read only for this, and are not returned, are called hidden.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.errors import ColumnMissing
from tidegate.model.nearness import listed_with_nearest
from tidegate.model.settling import ROW_ID, SettleRules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyiceberg.schema import Schema
    from pyiceberg.types import NestedField

    from tidegate.config import IcebergSourceConfig

_SETTLED = {"changelog", "snapshot_diff"}
_ROW_LINEAGE_FORMAT = 3


def hidden_columns(
    schema: Schema, config: IcebergSourceConfig, format_version: int, source: str
) -> tuple[str, ...]:
    """Return the columns that are only read for settling: identifiers, and the row id.

    Args:
        schema: the whole schema to read with.
        config: the pipeline's `source`.
        format_version: of the table; row ids came with v3.
        source: the table, for errors.

    Raises:
        ColumnMissing: `read.identifier_columns` names no column.
    """
    read = config.read
    if read.output_mode not in _SETTLED:
        return ()
    asked = read.columns
    known = None if asked is None else {_folded(name, config) for name in asked}
    hidden = [
        field.name
        for field in _identifiers(schema, config, source)
        if known is not None and _folded(field.name, config) not in known
    ]
    own = {field.name for field in schema.fields}
    if format_version >= _ROW_LINEAGE_FORMAT and ROW_ID not in own and ROW_ID not in (asked or ()):
        hidden.append(ROW_ID)
    return tuple(hidden)


def settle_rules(
    whole: Schema, selected: Schema, config: IcebergSourceConfig, names: Sequence[str], source: str
) -> SettleRules | None:
    """Return how the changes of a table are settled; None if the mode has none.

    Args:
        whole: the whole schema to read with.
        selected: the table's columns that are read, with their names in the result.
        config: the pipeline's `source`.
        names: the names of all columns that are read, including hidden ones.
        source: the table, for errors.
    """
    read = config.read
    if read.output_mode not in _SETTLED:
        return None
    keys = {field.field_id for field in _identifiers(whole, config, source)}
    asked = None if read.columns is None else {_folded(name, config) for name in read.columns}
    identifiers = tuple(field.name for field in selected.fields if field.field_id in keys)
    shown = tuple(
        field.name
        for field in selected.fields
        if asked is None or _folded(field.name, config) in asked
    )
    row_ids = ROW_ID in names and ROW_ID not in {field.name for field in selected.fields}
    hidden = [name for name in identifiers if name not in shown]
    if row_ids and ROW_ID not in (read.columns or ()):
        hidden.append(ROW_ID)
    return SettleRules(
        # Columns that only the filter needs are not part of the resulting rows.
        compared=(*shown, *(name for name in identifiers if name not in shown)),
        identifiers=identifiers,
        carry_over=read.remove_carry_over,
        row_ids=row_ids,
        strict=read.strict_identifiers,
        hidden=tuple(hidden),
    )


def _identifiers(schema: Schema, config: IcebergSourceConfig, source: str) -> list[NestedField]:
    """Return the columns that identify a row; net changes are never paired (ICE-3.18)."""
    read = config.read
    if read.output_mode != "changelog" or read.net_changes:
        return []
    if read.identifier_columns is None:
        # Only whole columns can be read in addition: a key inside a struct pairs nothing.
        top = {field.field_id: field for field in schema.fields}
        ids = list(schema.identifier_field_ids)
        return [top[key] for key in ids] if all(key in top for key in ids) else []
    return [_named(schema, name, config, source) for name in read.identifier_columns]


def _named(schema: Schema, name: str, config: IcebergSourceConfig, source: str) -> NestedField:
    folded = _folded(name, config)
    for field in schema.fields:
        if _folded(field.name, config) == folded:
            return field
    known = listed_with_nearest(name, (field.name for field in schema.fields))
    raise ColumnMissing(source=source, column=name, known=known)


def _folded(name: str, config: IcebergSourceConfig) -> str:
    return name if config.case_sensitive else name.lower()
