"""The Avro schemas of tables and log blocks."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro

_OF_UTC = frozenset({"timestamp-millis", "timestamp-micros", "timestamp-nanos"})


def avro_schema(text: str) -> Any:
    """Read a schema; its timestamps are times in UTC, as Avro defines them.

    Iceberg's files have the same logical types for both kinds, and tell them apart by a property,
    which is therefore added.

    Raises:
        ValueError: it is not JSON.
    """
    return _with_zones(json.loads(text))


def _with_zones(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_with_zones(member) for member in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: value if key == "default" else _with_zones(value) for key, value in schema.items()}
    if made.get("logicalType") in _OF_UTC:
        made.setdefault("adjust-to-utc", True)
    return made


def first_record(container: bytes) -> Any:
    """Read the first record of a container; None if it has none.

    Raises:
        ValueError: it is damaged.
    """
    try:
        return next(iter(fastavro.reader(io.BytesIO(container))), None)
    # Damaged bytes make the decoder raise errors of many kinds, not all of which are documented.
    except Exception as damaged:
        msg = f"not readable as Avro: {damaged!r}"
        raise ValueError(msg) from damaged


def lone_record(encoded: bytes, schema: Any, **options: Any) -> Any:
    """Read a record without a container.

    Args:
        encoded: the record.
        schema: parsed by the decoder.
        options: of the decoder.

    Raises:
        ValueError: it is damaged.
    """
    try:
        return fastavro.schemaless_reader(io.BytesIO(encoded), schema, None, **options)
    # As above.
    except Exception as damaged:
        msg = f"not readable as Avro: {damaged!r}"
        raise ValueError(msg) from damaged


def parsed_schema(text: str) -> Any:
    """Parse a schema for `lone_record`.

    Raises:
        ValueError: it is none.
    """
    try:
        return fastavro.parse_schema(json.loads(text))
    except fastavro.schema.SchemaParseException as damaged:
        msg = f"no Avro schema: {damaged}"
        raise ValueError(msg) from damaged
