"""Open metadata with variant columns, so that the other columns can be read (ICE-1.3).

pyiceberg refuses such metadata as a whole. Here these columns get the type `unknown` and a mark, by
which reads of them are refused.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import ValidationError
from pyiceberg.io import load_file_io
from pyiceberg.serializers import Compressor
from pyiceberg.table import StaticTable
from pyiceberg.table.metadata import TableMetadataUtil

from tidegate.errors import UnsupportedFeature

if TYPE_CHECKING:
    from pyiceberg.schema import Schema

_VARIANT = "variant"
_READ_AS = "unknown"
_MARK = "tidegate: a variant, which cannot be read"


def load_metadata(location: str, properties: dict[str, str]) -> StaticTable:
    """Load one metadata file; raises pyiceberg's errors, except those about a variant alone."""
    try:
        return StaticTable.from_metadata(location, properties)
    except (ValueError, ValidationError):
        file = load_file_io(properties, location).new_input(location)
        with (
            file.open() as stream,
            Compressor.get_compressor(location).stream_decompressor(stream) as content,
        ):
            raw = json.loads(content.read())
        if not mark_variants(raw):
            raise
    metadata = TableMetadataUtil.parse_obj(raw)
    return StaticTable(
        identifier=("static-table", location),
        metadata=metadata,
        metadata_location=location,
        io=load_file_io({**properties, **metadata.properties}, location),
        catalog=NoopCatalog("static-table"),
    )


def refuse_marked(schema: Schema, source: str) -> None:
    """Refuse a selection with a marked column.

    Raises:
        UnsupportedFeature: it names the column.
    """
    for field in schema.fields:
        if field.doc == _MARK:
            feature = f"a column of type {_VARIANT} ('{field.name}')"
            raise UnsupportedFeature(source=source, feature=feature)


def mark_variants(raw: Any) -> bool:
    """Mark top-level columns with a variant anywhere in them, in parsed metadata.

    Returns:
        Whether there was one.
    """
    found = False
    try:
        for field in (field for schema in raw["schemas"] for field in schema["fields"]):
            field["type"], has_variant = _readable(field["type"])
            if has_variant:
                # Columns are selected as a whole, so the whole column cannot be read.
                field["doc"] = _MARK
                found = True
    except (KeyError, TypeError, ValueError):
        # There is no schema at all, and pyiceberg's error applies.
        return False
    return found


def _readable(kind: Any) -> tuple[Any, bool]:
    """Return a type with `unknown` for every variant in it, and whether there was one."""
    if isinstance(kind, str):
        return (_READ_AS, True) if kind == _VARIANT else (kind, False)
    made, found = dict(kind), False
    for part in ("element", "key", "value"):
        if part in made:
            made[part], within = _readable(made[part])
            found = found or within
    if "fields" in made:
        made["fields"] = [dict(field) for field in made["fields"]]
        for field in made["fields"]:
            field["type"], within = _readable(field["type"])
            found = found or within
    return made, found
