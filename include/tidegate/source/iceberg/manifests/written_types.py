"""Read the types that columns had when a manifest was written, from its header.

Bounds are bytes of that type, whatever the column's type in other schemas: types are promoted, and
a replaced table may use a field id with any type.
"""

from __future__ import annotations

import json
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from pyiceberg.exceptions import ValidationError
from pyiceberg.schema import Schema
from pyiceberg.types import PrimitiveType

from tidegate.source.iceberg.table.variants import mark_variants

if TYPE_CHECKING:
    from collections.abc import Mapping

UNTOLD: Mapping[int, PrimitiveType] = MappingProxyType({})
"""The types if no header has them: no bound can be read."""
_KEPT = 128
"""A window reads many manifests of few schemas."""


@lru_cache(_KEPT)
def written_types(header: str | None) -> Mapping[int, PrimitiveType]:
    """Return the primitive columns and fields of a table's schema by field id.

    Args:
        header: the schema as JSON; the same text gives the same object.
    """
    try:
        raw = json.loads(header or "")
        mark_variants({"schemas": [raw]})
        schema = Schema.model_validate(raw)
        found = {field_id: schema.find_type(field_id) for field_id in schema.field_ids}
    except (ValueError, TypeError, ValidationError):
        return UNTOLD
    return MappingProxyType(
        {field_id: kind for field_id, kind in found.items() if isinstance(kind, PrimitiveType)}
    )
