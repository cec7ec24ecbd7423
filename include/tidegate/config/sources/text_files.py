"""The options of a folder's text files, and of the markers that its partitions may have."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    WithJsonSchema,
    model_validator,
)

from tidegate.config.column_types import parse_type
from tidegate.config.section import Character, Section
from tidegate.config.words import KeyProblem

_USUAL_MARKER = "_SUCCESS"


def _encoding(name: str) -> str:
    try:
        found = codecs.lookup(name)
        "a".encode(name)
    except LookupError as unknown:
        msg = f"unknown encoding '{name}'"
        raise ValueError(msg) from unknown
    return found.name


def _as_list(found: Any) -> Any:
    return [found] if isinstance(found, str) else found


def _as_mapping(found: Any) -> Any:
    """Read a list of mappings, as in a plan; what else it is stays."""
    if isinstance(found, list) and all(isinstance(item, Mapping) for item in found):
        return dict(pair for item in found for pair in item.items())
    return found


ColumnTypeText = Annotated[str, AfterValidator(lambda text: str(parse_type(text)))]
"""A type as `parse_type` reads it, in one spelling."""
# A list in plans: JSON with sorted keys would lose the order, in which files without a header have
# their values.
ColumnTypes = Annotated[
    dict[str, ColumnTypeText],
    BeforeValidator(_as_mapping),
    PlainSerializer(lambda columns: [{name: kind} for name, kind in columns.items()]),
]
"""Columns with their types, in the order of the files."""


class CsvConfig(Section):
    """How the rows of CSV files are written."""

    header: bool = True
    """Whether the first row of a file names its columns; if not, `source.columns` does."""
    delimiter: Character = ","
    quote: Character | None = '"'
    """The character around values that contain delimiters, quotes (twice) or line breaks."""
    escape: Character | None = None
    """The character that takes away the meaning of the one behind it."""
    null: Annotated[
        tuple[str, ...],
        BeforeValidator(_as_list),
        WithJsonSchema({"type": ["string", "array"], "items": {"type": "string"}}),
    ] = Field(("",), min_length=1)
    """The texts that are NULL."""
    quoted_null: bool = True
    """Whether these texts are NULL also in quotes, as for Spark and DuckDB."""
    encoding: Annotated[str, AfterValidator(_encoding)] = "utf-8"

    @model_validator(mode="after")
    def _characters_differ(self) -> CsvConfig:
        taken = {self.delimiter: "delimiter"}
        for key in ("quote", "escape"):
            character = getattr(self, key)
            if character in taken:
                problem = f"is the same character as `{taken[character]}`"
                raise KeyProblem(problem, key=key)
            if character is not None:
                taken[character] = key
        return self


class MarkerOption(Section):
    """Which partitions are complete: those with a file of this name."""

    name: str = Field(_USUAL_MARKER, pattern=r"^[_.][^/]+$")


def _marker(found: Any) -> Any:
    """Read `true` as the usual marker, and `false` as none."""
    if found is True:
        return {"name": _USUAL_MARKER}
    return None if found is False else found


RequiredMarker = Annotated[
    MarkerOption | None,
    BeforeValidator(_marker),
    WithJsonSchema(
        {
            "type": ["boolean", "object", "null"],
            "properties": {"name": {"type": "string"}},
            "additionalProperties": False,
        }
    ),
]

MetadataWord = Literal["file.path", "file.name", "file.size", "file.modification-time"]
