"""Turn decoded records into keyed ones: their keys, which are deletes, and how they are ordered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.physical.arrays import (
    flags,
    integer_column,
    integers,
    repeated_text,
    text_column,
    text_scalar,
    where_true,
    zero_of,
)
from tidegate.read.keyed_merge import KeyedRecords
from tidegate.source.hudi.table.columns import COMMIT_TIME, IS_DELETED, KEY, OPERATION
from tidegate.source.hudi.table.merge_rules import Filling, MergeMode
from tidegate.source.hudi.table.promotion import cast_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.physical.arrays import Flags
    from tidegate.source.hudi.logs.deletes import Deletes
    from tidegate.source.hudi.table.columns import KeyedBy

_DELETING = text_column(("D", "-D", "-U"))
"""Values of the operation column; the row before an update counts as a delete (HUDI-M11)."""
NULL_IN_KEY, EMPTY_IN_KEY = text_scalar("__null__"), text_scalar("__empty__")
"""What the writer puts into a key of several columns for NULL and for an empty text."""
_NAN = np.float64("nan").view(np.int64)
_UNAVAILABLE = text_scalar("__debezium_unavailable_value")


def record_keys(rows: pa.RecordBatch, by: KeyedBy) -> pa.Array:
    """Return the record keys of rows, as the writer spells them (HUDI-M15)."""
    if not by.key_fields:
        return rows.column(KEY)
    values = [rows.column(name).cast(pa.string()) for name in by.key_fields]
    if len(values) == 1:
        return values[0]
    named = [
        pc.binary_join_element_wise(text_scalar(name), _spelled(value), text_scalar(":"))
        for name, value in zip(by.key_fields, values, strict=True)
    ]
    return pc.binary_join_element_wise(*named, text_scalar(","))


def _spelled(values: pa.StringArray) -> pa.StringArray:
    """Return the values of one of several key columns as the writer spells them."""
    plain = values.fill_null(NULL_IN_KEY)
    return pc.if_else(pc.equal(plain, text_scalar("")), EMPTY_IN_KEY, plain)


def _ordering_values(rows: pa.RecordBatch, by: KeyedBy) -> tuple[pa.Array, ...]:
    """Return the ordering columns of rows; NULL counts as the int 0 (HUDI-M9)."""
    if by.mode != MergeMode.EVENT_TIME:
        return ()
    columns = (rows.column(name) for name in by.ordering)
    return tuple(
        values.fill_null(zero_of(values.type)) if _is_int(values.type) else _ordered(values)
        for values in columns
    )


def data_records(
    rows: pa.RecordBatch, by: KeyedBy, marked: Flags, missing: Sequence[str]
) -> KeyedRecords:
    """Return the records of a data block.

    Args:
        rows: decoded and conformed.
        by: how they are keyed.
        marked: see `KeyedRecords`.
        missing: columns that the block does not have, because its records are partial.
    """
    return _keyed(rows, by, marked, _deleted(rows, by), missing)


def standing_rows(rows: pa.RecordBatch, by: KeyedBy, marked: Flags) -> KeyedRecords:
    """Return rows of a base file as what log records are merged with."""
    return _keyed(rows, by, marked, np.zeros(rows.num_rows, np.bool_), ())


def _keyed(
    rows: pa.RecordBatch, by: KeyedBy, marked: Flags, deleted: Flags, missing: Sequence[str]
) -> KeyedRecords:
    ordering = _ordering_values(rows, by)
    return KeyedRecords(
        rows=pa.Table.from_batches([rows]),
        keys=record_keys(rows, by),
        deleted=deleted,
        marked=marked,
        ordering=ordering,
        unordered=_unordered(rows, by, deleted) if ordering else np.zeros(0, np.bool_),
        missing=_missing(rows, by, missing),
    )


def delete_records(
    deletes: Deletes, by: KeyedBy, schema: pa.Schema, instant: str, *, marked: bool
) -> KeyedRecords:
    """Return the records of a delete block.

    Args:
        deletes: its content.
        by: how they are keyed.
        schema: of the rows of data blocks; those of deletes are NULL, but for the commit time.
        instant: of the block.
        marked: whether they are marked.
    """
    count = len(deletes.keys)
    columns = [
        repeated_text(instant, count)
        if column.name == COMMIT_TIME
        else pa.nulls(count, column.type)
        for column in schema
    ]
    ordering: tuple[pa.Array, ...] = ()
    unordered = np.zeros(0, np.bool_)
    if by.mode == MergeMode.EVENT_TIME and by.ordering:
        ordering, unordered = _typed(deletes, [schema.field(name).type for name in by.ordering])
    return KeyedRecords(
        rows=pa.Table.from_arrays(columns, schema=schema),
        keys=deletes.keys.cast(pa.string()),
        deleted=np.ones(count, np.bool_),
        marked=np.full(count, marked),
        ordering=ordering,
        unordered=unordered,
    )


def joined_records(parts: Sequence[KeyedRecords], schema: pa.Schema) -> KeyedRecords:
    """Put the records of blocks together, in the order of the blocks."""
    none = pa.Table.from_arrays([pa.nulls(0, column.type) for column in schema], schema=schema)
    rows = pa.concat_tables([none, *(part.rows for part in parts)])
    columns = sorted({name for part in parts for name in part.missing})
    ordered = next((len(part.ordering) for part in parts), 0)
    return KeyedRecords(
        rows=rows,
        keys=_concat([part.keys for part in parts], pa.string()),
        deleted=_all([part.deleted for part in parts]),
        marked=_all([part.marked for part in parts]),
        ordering=tuple(
            pa.concat_arrays([part.ordering[place] for part in parts]) for place in range(ordered)
        ),
        unordered=_all([part.unordered for part in parts]),
        missing={
            name: _all([part.missing.get(name, np.zeros(len(part), np.bool_)) for part in parts])
            for name in columns
        },
    )


def _deleted(rows: pa.RecordBatch, by: KeyedBy) -> Flags:
    found = np.zeros(rows.num_rows, np.bool_)
    names = rows.schema.names
    if IS_DELETED in names:
        found |= where_true(rows.column(IS_DELETED))
    if OPERATION in names:
        found |= where_true(pc.is_in(rows.column(OPERATION), value_set=_DELETING))
    if by.marker is not None and by.marker[0] in names:
        column, value = by.marker
        found |= where_true(pc.equal(rows.column(column).cast(pa.string()), text_scalar(value)))
    return found


def _unordered(rows: pa.RecordBatch, by: KeyedBy, deleted: Flags) -> Flags:
    """Return which records have no ordering value that could be compared (HUDI-L5, M9, M10).

    NULL counts as the int 0, and values of different types are not compared. A delete whose values
    are all the int 0 is one without an order, as in a delete block.
    """
    lacking = np.zeros(rows.num_rows, np.bool_)
    zero = deleted.copy()
    for name in by.ordering:
        values = rows.column(name)
        absent = flags(values.is_null())
        if _is_int(values.type):
            zero &= absent | where_true(pc.equal(values, zero_of(values.type)))
        else:
            lacking |= absent
            zero &= absent
    return lacking | zero


def _is_int(kind: pa.DataType) -> bool:
    """Return whether values are compared as ints of 32 bits."""
    return bool(pa.types.is_int32(kind) or pa.types.is_date32(kind))


def _missing(rows: pa.RecordBatch, by: KeyedBy, names: Sequence[str]) -> dict[str, Flags]:
    every = np.ones(rows.num_rows, np.bool_)
    found = dict.fromkeys(names, every)
    if by.filling == Filling.NOTHING:
        return found
    kept = {KEY, *by.key_fields, *by.ordering}
    for name in rows.schema.names:
        if name in found or name in kept or name.startswith("_hoodie_"):
            continue
        values = rows.column(name)
        if by.filling == Filling.DEFAULTS:
            found[name] = flags(values.is_null())
        elif pa.types.is_string(values.type):
            found[name] = where_true(pc.equal(values, _UNAVAILABLE))
    return found


def _typed(deletes: Deletes, types: Sequence[pa.DataType]) -> tuple[tuple[pa.Array, ...], Flags]:
    count = len(deletes.keys)
    unordered = np.ones(count, np.bool_)
    typed: list[pa.Array] = []
    for place, kind in enumerate(types):
        values = deletes.ordering[place] if place < len(deletes.ordering) else pa.nulls(count)
        converted = _converted(values, kind)
        unordered &= flags(values.is_null()) if converted is not None else True
        known = converted if converted is not None else pa.nulls(count, kind)
        typed.append(_ordered(_zero_for_null(known)))
    return tuple(typed), unordered


def _converted(values: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """Return ordering values as the type of their column; None if they cannot be compared."""
    try:
        if pa.types.is_timestamp(kind) and pa.types.is_integer(values.type):
            # Microseconds, whatever the unit of the column.
            return values.cast(pa.timestamp("us", kind.tz)).cast(kind)
        if pa.types.is_string(kind) != pa.types.is_string(values.type) and len(values):
            return None if values.null_count < len(values) else pa.nulls(len(values), kind)
        cast = cast_to(values.type, kind)
        return values.cast(kind) if cast is None else cast(values)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _ordered(values: pa.Array) -> pa.Array:
    """Return floats as integers in the order of Java: -0.0 below 0.0, NaN above all (HUDI-M9)."""
    if not pa.types.is_floating(values.type):
        return values
    floats = integers(values.cast(pa.float64()))
    bits = np.where(np.isnan(floats), _NAN, floats.view(np.int64))
    made = integer_column(np.where(bits < 0, bits ^ np.iinfo(np.int64).max, bits))
    return pc.if_else(values.is_valid(), made, pa.nulls(1, made.type)[0])


def _zero_for_null(values: pa.Array) -> pa.Array:
    zero = _zero(values.type)
    return values if zero is None or not values.null_count else values.fill_null(zero)


def _zero(kind: pa.DataType) -> pa.Scalar | None:
    kinds = (pa.types.is_decimal, pa.types.is_integer, pa.types.is_floating)
    return zero_of(kind) if any(is_one(kind) for is_one in kinds) else None


def _all(parts: Sequence[Flags]) -> Flags:
    return np.concatenate(parts) if parts else np.zeros(0, np.bool_)


def _concat(parts: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    return pa.concat_arrays([part.cast(kind) for part in parts]) if parts else pa.nulls(0, kind)
