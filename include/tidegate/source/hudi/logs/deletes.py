"""Decode delete blocks: keys with ordering values of any type (HUDI-L4, L5)."""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.physical.arrays import zero_of
from tidegate.physical.avro_container import read_long, write_bytes, write_long
from tidegate.physical.avro_decoder import AvroDecoder
from tidegate.source.hudi.table.avro import lone_record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LEAD = struct.Struct(">II")
DELETES_VERSION = 3
_DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15}
_DATE = {"type": "int", "logicalType": "date"}
_TIMESTAMP = {"type": "long", "logicalType": "timestamp-micros"}
_WRAPPED: Mapping[str, Any] = {
    "BooleanWrapper": "boolean",
    "IntWrapper": "int",
    "LongWrapper": "long",
    "FloatWrapper": "float",
    "DoubleWrapper": "double",
    "BytesWrapper": "bytes",
    "StringWrapper": "string",
    "DateWrapper": _DATE,
    "DecimalWrapper": _DECIMAL,
    "TimeMicrosWrapper": {"type": "long", "logicalType": "time-micros"},
    "TimestampMicrosWrapper": _TIMESTAMP,
}
"""The records of the union of an ordering value, in its order, after null."""
_TYPES = tuple(_WRAPPED.values())
_NO_ORDERING_BRANCH = 0
_INT_BRANCH = list(_WRAPPED).index("IntWrapper") + 1
_ARRAY_BRANCH = len(_WRAPPED) + 1
_ZERO_BYTES = {
    list(_WRAPPED).index("FloatWrapper") + 1: 4,
    list(_WRAPPED).index("DoubleWrapper") + 1: 8,
}
"""Bytes of an encoded zero, where it is not one byte."""
_TEXT = ["null", "string"]
_MARK_KEY = "\0end of the list"
_MARK = write_long(1) + write_bytes(_MARK_KEY.encode()) + write_long(0)


def _wrapper(name: str) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": "value", "type": _WRAPPED[name]}],
    }


_LOCAL_DATE = {
    "type": "record",
    "name": "LocalDateWrapper",
    "fields": [{"name": "value", "type": _DATE}],
}
_ARRAY = {
    "type": "record",
    "name": "ArrayWrapper",
    "fields": [
        {
            "name": "wrappedValues",
            "type": ["null", {"type": "array", "items": ["null", *_WRAPPED, _LOCAL_DATE]}],
        }
    ],
}
_SCHEMA: Any = fastavro.parse_schema(
    {
        "type": "record",
        "name": "HoodieDeleteRecordList",
        "fields": [
            {
                "name": "deleteRecordList",
                "type": {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": "HoodieDeleteRecord",
                        "fields": [
                            {"name": "recordKey", "type": _TEXT},
                            {"name": "partitionPath", "type": _TEXT},
                            {
                                "name": "orderingVal",
                                "type": ["null", *map(_wrapper, _WRAPPED), _ARRAY],
                            },
                        ],
                    },
                },
            }
        ],
    }
)


@dataclass(frozen=True, eq=False)
class Deletes:
    """The records of one delete block, in written order."""

    keys: pa.StringArray
    ordering: tuple[pa.Array, ...]
    """One array per ordering field; none if no record has an ordering value. NULL in all of them:
    the record has none (HUDI-L5)."""


def read_deletes(content: bytes) -> Deletes:
    """Decode the content of a delete block.

    Raises:
        pa.ArrowNotImplementedError: it has another version than 3 (HUDI-S3).
        pa.ArrowInvalid: it is damaged.
    """
    if len(content) < _LEAD.size:
        problem = f"expected a delete block, found {len(content)} bytes"
        raise pa.ArrowInvalid(problem)
    version, length = _LEAD.unpack_from(content)
    if version != DELETES_VERSION:
        problem = f"a delete block of version {version}, expected {DELETES_VERSION}"
        raise pa.ArrowNotImplementedError(problem)
    encoded = content[_LEAD.size : _LEAD.size + length]
    try:
        return _all_alike(encoded) or _one_by_one(encoded)
    except (ValueError, struct.error, LookupError, TypeError) as damaged:
        problem = f"no list of deletes: {damaged!r}"
        raise pa.ArrowInvalid(problem) from damaged


def native_deletes(rows: pa.RecordBatch, key: str, ordering: Sequence[str]) -> Deletes:
    """Return the deletes of a native log, which has a column for each part of them (HUDI-L8).

    Args:
        rows: its columns.
        key: the column of keys.
        ordering: the columns of ordering values; the log may be without them.

    Raises:
        pa.ArrowInvalid: it has no keys.
    """
    names = rows.schema.names
    if key not in names or rows.column(key).null_count:
        problem = f"expected a column {key} without NULL in a log of deletes, found {names}"
        raise pa.ArrowInvalid(problem)
    values = tuple(
        rows.column(name) if name in names else pa.nulls(rows.num_rows) for name in ordering
    )
    if len(values) == 1 and pa.types.is_int32(values[0].type):
        values = (_null_for_zero(values[0]),)
    has_some = any(column.null_count < len(column) for column in values)
    return Deletes(rows.column(key), values if has_some else ())


def _all_alike(encoded: bytes) -> Deletes | None:
    """Decode a list whose ordering values all have one type; None if it is otherwise.

    A union is encoded as the number of its branch and the value: as a record of both, if the branch
    is the same for all.
    """
    reader = io.BytesIO(encoded)
    count = read_long(reader)
    if count < 0:
        count, _ = -count, read_long(reader)
    if count == 0:
        return Deletes(pa.nulls(0, pa.string()), ())
    start = reader.tell()
    branch = _first_branch(reader)
    if not _NO_ORDERING_BRANCH <= branch < _ARRAY_BRANCH:
        return None
    fields: list[dict[str, Any]] = [
        {"name": "key", "type": _TEXT},
        {"name": "partition", "type": _TEXT},
        {"name": "branch", "type": "long"},
    ]
    if branch != _NO_ORDERING_BRANCH:
        fields.append({"name": "value", "type": _TYPES[branch - 1]})
    decoder = AvroDecoder({"type": "record", "name": "delete", "fields": fields})
    # A row of our own in place of the list's end: it is read only if nothing else is before it.
    mark = _MARK + write_long(branch) + bytes(_ZERO_BYTES.get(branch, int(branch > 0)))
    names = [field["name"] for field in fields]
    try:
        rows = decoder.decode(encoded[start:-1] + mark, count + 1, names)
    except pa.ArrowInvalid:
        return None
    if rows.column("key")[count].as_py() != _MARK_KEY:
        return None
    if rows.column("branch").unique().to_pylist() != [branch]:
        return None
    return _of_one_type(rows.slice(0, count), branch)


def _first_branch(reader: io.BytesIO) -> int:
    for _ in ("key", "partition"):
        if read_long(reader):
            reader.seek(read_long(reader), io.SEEK_CUR)
    return read_long(reader)


def _of_one_type(rows: pa.RecordBatch, branch: int) -> Deletes:
    keys = rows.column("key")
    if branch == _NO_ORDERING_BRANCH:
        return Deletes(keys, ())
    values = rows.column("value")
    if branch == _INT_BRANCH:
        values = _null_for_zero(values)
    return Deletes(keys, (values,) if values.null_count < len(values) else ())


def _null_for_zero(values: pa.Array) -> pa.Array:
    """Return int values without 0, which says that there is no ordering (HUDI-L5)."""
    return pc.if_else(pc.equal(values, zero_of(values.type)), pa.nulls(1, values.type)[0], values)


def _one_by_one(encoded: bytes) -> Deletes:
    """Decode a list with ordering values of several types or fields, or without some."""
    found = lone_record(encoded, _SCHEMA, return_record_name=True)
    records = found["deleteRecordList"]
    keys = pa.array([record["recordKey"] for record in records], pa.string())
    values = [_values(record["orderingVal"]) for record in records]
    width = max(map(len, values), default=0)
    if width == 0:
        return Deletes(keys, ())
    columns = zip(*((*row, *[None] * (width - len(row))) for row in values), strict=True)
    return Deletes(keys, tuple(_column(column) for column in columns))


def _values(found: tuple[str, Any] | None) -> tuple[Any, ...]:
    if found is None:
        return ()
    name, record = found
    if name == "ArrayWrapper":
        wrapped = record["wrappedValues"] or ()
        return tuple(None if it is None else it[1]["value"] for it in wrapped)
    if name == "IntWrapper" and record["value"] == 0:
        return ()
    return (record["value"],)


def _column(values: Sequence[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        kinds = {type(value).__name__ for value in values if value is not None}
        if all(isinstance(value, (int, float, Decimal, type(None))) for value in values):
            return pa.array([None if it is None else Decimal(it) for it in values])
        problem = f"ordering values of several types: {', '.join(sorted(kinds))}"
        raise pa.ArrowNotImplementedError(problem) from None
