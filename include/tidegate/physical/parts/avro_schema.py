"""The Avro schema of columns, as Spark writes it: every value may be missing."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidegate.physical.parts.types import is_odd

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RECORD = "row"
_PLAIN: Mapping[pa.DataType, Any] = MappingProxyType(
    {
        pa.null(): "null",
        pa.bool_(): "boolean",
        pa.int8(): "int",
        pa.int16(): "int",
        pa.int32(): "int",
        pa.uint8(): "int",
        pa.uint16(): "int",
        pa.int64(): "long",
        pa.uint32(): "long",
        pa.float32(): "float",
        pa.float64(): "double",
        pa.string(): "string",
        pa.large_string(): "string",
        pa.binary(): "bytes",
        pa.large_binary(): "bytes",
        pa.date32(): {"type": "int", "logicalType": "date"},
        pa.time32("s"): {"type": "int", "logicalType": "time-millis"},
        pa.time32("ms"): {"type": "int", "logicalType": "time-millis"},
        pa.time64("us"): {"type": "long", "logicalType": "time-micros"},
    }
)
_UNITS = {"s": "millis", "ms": "millis", "us": "micros", "ns": "nanos"}


def avro_schema(schema: pa.Schema) -> dict[str, Any]:
    """Return the schema of a file with these columns, whose types are `stored` ones."""
    return _record(_RECORD, schema)


def refusal(kind: pa.DataType) -> str | None:
    """Return why Avro cannot hold a type; None: it can."""
    if pa.types.is_uint64(kind):
        return "the numbers of Avro end at 2^63 - 1"
    if is_odd(kind):
        return "Avro has no such type"
    if pa.types.is_map(kind) and not _is_text(kind.key_type):
        return "the keys of a map are texts in Avro"
    if pa.types.is_struct(kind):
        odd = next((field.name for field in kind if not is_name(field.name)), None)
        return None if odd is None else name_refusal(odd)
    return None


def is_name(name: str) -> bool:
    """Return whether Avro allows a name."""
    return _NAME.fullmatch(name) is not None


def name_refusal(name: str) -> str:
    """Return why a name is refused."""
    return f"a name in Avro has letters, digits and _ only, unlike '{name}'"


def decimal_bytes(precision: int) -> int:
    """Return how many bytes hold every decimal of a precision."""
    most: int = 10**precision - 1
    return most.bit_length() // 8 + 1


def _record(name: str, fields: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [_field(f"{name}_{field.name}", field) for field in fields],
    }


def _field(path: str, field: pa.Field) -> dict[str, Any]:
    return {"name": field.name, "type": _nullable(path, field.type), "default": None}


def _nullable(path: str, kind: pa.DataType) -> Any:
    return "null" if pa.types.is_null(kind) else ["null", _type(path, kind)]


def _type(path: str, kind: pa.DataType) -> Any:
    """Return the schema of a type; `path` makes the names of types unique."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    if pa.types.is_timestamp(kind):
        return _timestamp(kind)
    if pa.types.is_nested(kind):
        return _nested(path, kind)
    if pa.types.is_decimal(kind):
        size = decimal_bytes(kind.precision)
        meaning = {"logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
        return {"type": "fixed", "name": path, "size": size, **meaning}
    return {"type": "fixed", "name": path, "size": kind.byte_width}


def _nested(path: str, kind: pa.DataType) -> Any:
    if pa.types.is_struct(kind):
        return _record(path, kind)
    if pa.types.is_map(kind):
        return {"type": "map", "values": _nullable(f"{path}_value", kind.item_type)}
    return {"type": "array", "items": _nullable(f"{path}_element", kind.value_type)}


def _timestamp(kind: pa.DataType) -> dict[str, Any]:
    unit = _UNITS[kind.unit]
    if kind.tz is None:
        return {"type": "long", "logicalType": f"local-timestamp-{unit}"}
    # Iceberg's readers take it for a time without a zone unless it says so.
    return {"type": "long", "logicalType": f"timestamp-{unit}", "adjust-to-utc": True}


def _is_text(kind: pa.DataType) -> bool:
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(
        pa.types.is_string(plain)
        or pa.types.is_large_string(plain)
        or pa.types.is_string_view(plain)
    )
