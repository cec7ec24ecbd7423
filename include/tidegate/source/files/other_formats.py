"""Recognise files of formats that a folder of Parquet files cannot have, by first bytes or name."""

from __future__ import annotations

from pathlib import PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_PARQUET = b"PAR1"
_BEGINNINGS: Mapping[bytes, str] = MappingProxyType(
    {
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
LONGEST = max(map(len, _BEGINNINGS))
"""How many bytes of a file's beginning are needed."""


def other_format(path: str, beginning: bytes) -> str | None:
    """Return the format of a file that is not Parquet; None if it is, or may be a damaged one.

    Args:
        path: of the file, whose ending says it for formats of text.
        beginning: the first `LONGEST` bytes of the file, or all.
    """
    if beginning.startswith(_PARQUET):
        return None
    for word, name in _BEGINNINGS.items():
        if beginning.startswith(word):
            return name
    return _ENDINGS.get(PurePath(path).suffix.lower())
