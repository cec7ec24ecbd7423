"""Recognise files of other formats than those of a folder, by their first bytes or name."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tidegate.physical.text_stream import compression_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidegate.source.files.listing import Listing

_BEGINNINGS: Mapping[bytes, str] = MappingProxyType(
    {
        b"PAR1": "Parquet",
        b"ORC": "ORC",
        b"Obj\x01": "Avro",
        b"ARROW1": "Arrow",
        b"\x1f\x8b": "gzip",
        b"\x28\xb5\x2f\xfd": "Zstandard",
        b"PK\x03\x04": "ZIP",
    }
)
_ENDINGS: Mapping[str, str] = MappingProxyType(
    {".csv": "CSV", ".tsv": "CSV", ".json": "JSON", ".jsonl": "JSON", ".ndjson": "JSON"}
    | {".txt": "text", ".xml": "XML", ".orc": "ORC", ".avro": "Avro"}
)
_READ = frozenset({"csv", "json", "orc", "avro"})
"""Formats that a folder may have besides Parquet."""
LONGEST = max(map(len, _BEGINNINGS))
"""How many bytes of a file's beginning are needed."""


def other_format(path: str, beginning: bytes, expected: str = "parquet") -> str | None:
    """Return the format of a file that has another one; None if it may be a damaged one.

    Args:
        path: of the file, whose ending says it for formats of text.
        beginning: the first `LONGEST` bytes of the file, or all.
        expected: the format that it should have; one with a footer or header.
    """
    for word, name in _BEGINNINGS.items():
        if beginning.startswith(word):
            return None if name.lower() == expected else name
    found = _ENDINGS.get(PurePath(path).suffix.lower())
    return None if found is None or found.lower() == expected else found


def guess_format(listing: Listing) -> dict[str, Any]:
    """Return the key of `source` for the format that the names of a folder's files say.

    Returns:
        Empty for Parquet, and if most files have names that say nothing.
    """
    found = Counter(_format_of_name(file.path) for file in listing.files)
    if not found:
        return {}
    ((name, _),) = found.most_common(1)
    if name is None:
        return {}
    has_tabs = all(".tsv" in file.path.lower() for file in listing.files)
    return {"format": name, **({"csv": {"delimiter": "\t"}} if has_tabs else {})}


def _format_of_name(path: str) -> str | None:
    name = PurePath(path)
    if compression_of(path) is not None:
        name = name.with_suffix("")
    said = _ENDINGS.get(name.suffix.lower(), "").lower()
    return said if said in _READ else None


def binary_format(path: str, beginning: bytes) -> str | None:
    """Return the format of a file that should be text; None if it may be.

    Args:
        path: of the file, whose ending says its compression.
        beginning: the first `LONGEST` bytes of the file, or all.
    """
    if compression_of(path) is not None:
        return None
    found = (name for word, name in _BEGINNINGS.items() if beginning.startswith(word))
    return next(found, None)
