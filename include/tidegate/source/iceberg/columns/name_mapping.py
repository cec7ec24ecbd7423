"""Read the names that a table maps to field ids for files without any (ICE-6.14)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError
from pyiceberg.table.name_mapping import parse_mapping_from_json

from tidegate.errors import InvalidNameMapping

if TYPE_CHECKING:
    from pyiceberg.table.name_mapping import MappedField


def parse_mapping(text: str, source: str) -> list[MappedField]:
    """Read a table's `schema.name-mapping.default`.

    Raises:
        InvalidNameMapping: it cannot be parsed.
    """
    try:
        return list(parse_mapping_from_json(text).root)
    except ValidationError as broken:
        raise InvalidNameMapping(source=source, problem=str(broken)) from broken
