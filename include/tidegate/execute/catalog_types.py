"""Types of columns as Spark describes them in JSON, written as Hive writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidegate.metastore.hive_types import nested

if TYPE_CHECKING:
    from collections.abc import Mapping


def type_text(said: Mapping[str, Any]) -> str:
    """Return a type of `DESCRIBE TABLE … AS JSON` as a text: `struct<a:int,b:array<string>>`."""
    name = str(said["name"])
    if name == "struct":
        parts = [f"{field['name']}:{type_text(field['type'])}" for field in said["fields"]]
    elif name == "map":
        parts = [type_text(said["key_type"]), type_text(said["value_type"])]
    elif name == "array":
        parts = [type_text(said["element_type"])]
    elif name == "decimal":
        return f"decimal({said['precision']},{said['scale']})"
    elif name in {"char", "varchar"}:
        return f"{name}({said['length']})"
    else:
        return name
    return str(nested(name, parts))
