"""The meaning of Avro types without children, and a plain type with the same bytes for each.

A type with a logical type, such as a decimal or a time, is decoded as a plain type, and its arrays
are then converted as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidegate.physical import avro_arrays

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PLAIN: Mapping[str, pa.DataType] = MappingProxyType(
    {
        "boolean": pa.bool_(),
        "int": pa.int32(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "bytes": pa.binary(),
        "string": pa.string(),
    }
)
"""Types without children by their names."""
_TIMES: Mapping[str, tuple[str, pa.DataType]] = MappingProxyType(
    {
        "date": ("int", pa.date32()),
        "time-millis": ("int", pa.time32("ms")),
        "time-micros": ("long", pa.time64("us")),
        "local-timestamp-millis": ("long", pa.timestamp("ms")),
        "local-timestamp-micros": ("long", pa.timestamp("us")),
        "local-timestamp-nanos": ("long", pa.timestamp("ns")),
    }
)
_TIMESTAMPS: Mapping[str, str] = MappingProxyType(
    {"timestamp-millis": "ms", "timestamp-micros": "us", "timestamp-nanos": "ns"}
)
_MOST_DIGITS = 38


@dataclass(frozen=True)
class AvroType:
    """One type of a file's schema."""

    meaning: pa.DataType
    decoded: Any
    """The Avro schema of the plain type with the same bytes."""
    build: Callable[[pa.Array], pa.Array]
    """Converts decoded arrays to their logical type."""


def plain(decoded: Any, meaning: pa.DataType) -> AvroType:
    """Return a type whose arrays are converted by a cast."""
    return AvroType(meaning, decoded, lambda array: array.cast(meaning))


def primitive(kind: str, schema: Mapping[str, Any]) -> AvroType:
    """Read a primitive type and its logical type; one that does not fit it is ignored."""
    logical = str(schema.get("logicalType"))
    if kind == "bytes" and logical == "decimal":
        return _decimal("bytes", schema)
    if kind == "long" and logical in _TIMESTAMPS:
        # Iceberg's writers state which of its two types it is; its readers default to no zone.
        zone = "UTC" if schema.get("adjust-to-utc") else None
        return plain("long", pa.timestamp(_TIMESTAMPS[logical], zone))
    carrier, meaning = _TIMES.get(logical, ("", None))
    return plain(kind, meaning if carrier == kind else PLAIN[kind])


def fixed(schema: Mapping[str, Any], name: str) -> AvroType:
    """Read a type of fixed length, decoded under its own name."""
    decoded = {"type": "fixed", "name": name, "size": schema["size"]}
    if schema.get("logicalType") == "decimal":
        return _decimal(decoded, schema)
    return plain(decoded, pa.binary(schema["size"]))


def _decimal(decoded: Any, schema: Mapping[str, Any]) -> AvroType:
    precision = schema["precision"]
    if precision > _MOST_DIGITS:
        problem = f"an Avro decimal of {precision} digits"
        raise pa.ArrowNotImplementedError(problem)
    meaning = pa.decimal128(precision, schema.get("scale", 0))
    return AvroType(meaning, decoded, lambda array: avro_arrays.decimals(array, meaning))


def enum(symbols: Sequence[str]) -> AvroType:
    """Read an enumeration, which is encoded as the position of a symbol."""
    words = pa.array(symbols, pa.string())
    meaning = pa.string()
    return AvroType(meaning, "int", words.take)
