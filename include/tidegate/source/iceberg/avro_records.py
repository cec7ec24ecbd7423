"""Decode an Avro file of Iceberg's metadata that is in memory, record by record.

Takes headers, codecs and decoders from pyiceberg, but not its loop over blocks, which takes a file
that was cut off for one that ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pyiceberg.avro.decoder import new_decoder
from pyiceberg.avro.file import META_SCHEMA, SYNC_SIZE, AvroFileHeader
from pyiceberg.avro.resolver import construct_reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyiceberg.avro.decoder import BinaryDecoder
    from pyiceberg.schema import Schema

_Record = TypeVar("_Record")
_HEADER = construct_reader(META_SCHEMA, {-1: AvroFileHeader})


class AvroRecords:
    """The records of one file; `schema` is the writer's, with field ids."""

    def __init__(self, content: bytes) -> None:
        """Read the header.

        Raises:
            ValueError, EOFError, KeyError, IndexError: it is damaged.
            TypeError: a type is not written as Iceberg does (ICE-1.3).
        """
        self._size_bytes = len(content)
        self._decoder = new_decoder(content)
        header: AvroFileHeader = _HEADER.read(self._decoder)
        if header.magic != b"Obj\x01":
            problem = "no Avro file"
            raise ValueError(problem)
        self.schema: Schema = header.get_schema()
        self._sync = header.sync
        self._codec = header.compression_codec() if header.meta.get("avro.codec") else None

    def read(self, record: Callable[[BinaryDecoder], _Record]) -> Iterator[_Record]:
        """Decode every record with a function that consumes exactly one.

        Raises:
            ValueError, EOFError: the file is cut off, or not made of the records it says.
        """
        while self._decoder.tell() < self._size_bytes:
            count = self._decoder.read_int()
            block = self._decoder.read_bytes()
            if self._decoder.read(SYNC_SIZE) != self._sync:
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
