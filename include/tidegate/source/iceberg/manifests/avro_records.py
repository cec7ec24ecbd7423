"""Decode an Avro file of Iceberg's metadata in memory, record by record.

Uses schemas, codecs and decoders of pyiceberg, but reads header and blocks itself: pyiceberg's
compiled decoder reads past the end of a truncated file, into arbitrary memory.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

from pyiceberg.avro.decoder import new_decoder
from pyiceberg.avro.file import MAGIC, MAGIC_SIZE, SYNC_SIZE, AvroFileHeader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyiceberg.avro.decoder import BinaryDecoder
    from pyiceberg.schema import Schema

_Record = TypeVar("_Record")
_LONG_BITS = 64
_SCHEMA = "avro.schema"


class AvroRecords:
    """The records of one file.

    `schema` is the writer's, with field ids; `meta` are the texts of its header.
    """

    def __init__(self, content: bytes) -> None:
        """Read the header.

        Raises:
            ValueError, EOFError, KeyError, IndexError: it is damaged.
            TypeError: a type is not written as in Iceberg (ICE-1.3).
        """
        self._bytes = _Bytes(content)
        if self._bytes.take(MAGIC_SIZE) != MAGIC:
            problem = "no Avro file"
            raise ValueError(problem)
        texts = self._bytes.texts()
        if _SCHEMA in texts:
            # pyiceberg does not know names of types, which writers use when a type is repeated.
            texts[_SCHEMA] = json.dumps(_without_names(json.loads(texts[_SCHEMA]), {}))
        header = AvroFileHeader(MAGIC, texts, self._bytes.take(SYNC_SIZE))
        self.schema: Schema = header.get_schema()
        self.meta: Mapping[str, str] = header.meta
        self._sync = header.sync
        self._codec = header.compression_codec() if header.meta.get("avro.codec") else None

    def read(self, record: Callable[[BinaryDecoder], _Record]) -> Iterator[_Record]:
        """Decode every record with a function that consumes exactly one.

        Raises:
            ValueError, EOFError: the file is truncated, or does not have the records of its header.
        """
        while not self._bytes.is_at_end:
            count = self._bytes.number()
            block = self._bytes.take(self._bytes.number())
            if self._bytes.take(SYNC_SIZE) != self._sync:
                problem = "a block does not end where it should"
                raise ValueError(problem)
            if self._codec is not None:
                block = self._codec.decompress(block)
            decoder = new_decoder(block)
            for _ in range(count):
                yield record(decoder)
            if decoder.tell() != len(block):
                problem = "a block is longer than its records"
                raise ValueError(problem)


def _without_names(schema: Any, named: dict[str, Any]) -> Any:
    """Replace names of types by their earlier definitions.

    Args:
        schema: a type, or fields of a record.
        named: the types defined so far.
    """
    if isinstance(schema, str):
        return named.get(schema, schema)
    if isinstance(schema, list):
        return [_without_names(each, named) for each in schema]
    made = dict(schema)
    for part in ("type", "fields", "items", "values"):
        if part in made:
            made[part] = _without_names(made[part], named)
    if made.get("type") == "fixed":
        named[made["name"]] = made
    return made


class _Bytes:
    """A file in memory, read from its beginning and never past its end."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._place = 0

    @property
    def is_at_end(self) -> bool:
        return self._place >= len(self._content)

    def take(self, length: int) -> bytes:
        end = self._place + length
        if length < 0 or end > len(self._content):
            problem = f"it is cut off: expected {length} more bytes at byte {self._place}"
            raise EOFError(problem)
        found = self._content[self._place : end]
        self._place = end
        return found

    def number(self) -> int:
        value = shift = 0
        # A file that is truncated inside a number ends with an IndexError.
        while (byte := self._content[self._place]) >= 0x80 and shift < _LONG_BITS:
            value |= (byte & 0x7F) << shift
            shift += 7
            self._place += 1
        self._place += 1
        value |= byte << shift
        return (value >> 1) ^ -(value & 1)

    def texts(self) -> dict[str, str]:
        found: dict[str, str] = {}
        while count := self.number():
            if count < 0:
                # The number of bytes follows, too.
                self.number()
            for _ in range(abs(count)):
                name = self.take(self.number()).decode()
                found[name] = self.take(self.number()).decode()
        return found
