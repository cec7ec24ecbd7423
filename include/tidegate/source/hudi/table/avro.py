"""The Avro schemas of tables and log blocks."""

from __future__ import annotations

import json
from typing import Any

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
