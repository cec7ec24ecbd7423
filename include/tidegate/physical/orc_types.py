"""Read field ids and types of the columns of an ORC file from their Iceberg attributes.

ORC has fewer types than Iceberg, whose writers record the Iceberg type in attributes. Columns
without attributes stay unchanged.
"""

from __future__ import annotations

import pyarrow as pa

from tidegate.physical.protocol import id_metadata

_UUID_BYTES = 16
_MOST_BYTES = (1 << 31) - 1
"""The longest fixed length that Arrow supports."""
_TIMESTAMP_UNITS = {b"MICROS": "us", b"NANOS": "ns"}


def meant(field: pa.Field) -> pa.Field:
    """Return a field, at every depth, with its field id under `FIELD_ID` and its Iceberg type.

    Raises:
        pa.ArrowInvalid: an attribute is invalid.
    """
    attributes = field.metadata or {}
    metadata = id_metadata(field.name, attributes.get(b"iceberg.id"))
    return pa.field(field.name, _type(field.type, attributes), metadata=metadata)


def _type(kind: pa.DataType, attributes: dict[bytes, bytes]) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([meant(child) for child in kind])
    if pa.types.is_list(kind):
        return pa.list_(meant(kind.value_field).with_name("element"))
    if pa.types.is_map(kind):
        key = meant(kind.key_field).with_nullable(False)
        return pa.map_(key, meant(kind.item_field))
    return _primitive(kind, attributes)


def _primitive(kind: pa.DataType, attributes: dict[bytes, bytes]) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        unit = _TIMESTAMP_UNITS.get(attributes.get(b"iceberg.timestamp-unit", b""), kind.unit)
        return pa.timestamp(unit, kind.tz)
    if attributes.get(b"iceberg.long-type") == b"TIME":
        return pa.time64("us")
    if attributes.get(b"iceberg.binary-type") == b"UUID":
        return pa.binary(_UUID_BYTES)
    if attributes.get(b"iceberg.binary-type") == b"FIXED":
        return pa.binary(_length(attributes.get(b"iceberg.length", b"")))
    return kind


def _length(text: bytes) -> int:
    if not text.isdigit() or not 0 < int(text) <= _MOST_BYTES:
        problem = f"a column of fixed length has no length: {text!r}"
        raise pa.ArrowInvalid(problem)
    return int(text)
