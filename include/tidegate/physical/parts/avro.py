"""Part files in Avro."""

from __future__ import annotations

import hashlib
import json
import zlib
from types import MappingProxyType
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa

from tidegate.model.part_format import NO_COMPRESSION
from tidegate.physical.avro import AvroRows
from tidegate.physical.avro_container import write_block, write_header
from tidegate.physical.parts.avro_encoding import encode_rows
from tidegate.physical.parts.avro_schema import avro_schema, is_name, name_refusal, refusal
from tidegate.physical.parts.physical_rows import PhysicalPartRows
from tidegate.physical.parts.protocol import Unfit
from tidegate.physical.parts.types import stored_schema, unfit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow.dataset as ds

    from tidegate.model.part_format import PartFormat
    from tidegate.physical.parts.protocol import PartKind
    from tidegate.storage import PlacedFile

_BLOCK_ROWS = 1 << 14
_BLOCK_BYTES = 1 << 20
"""Encoding takes about eight times as many bytes of memory as a block has."""


class AvroParts:
    """See `PartKind`."""

    def unfit(self, schema: pa.Schema, form: PartFormat) -> Iterator[Unfit]:
        """Yield columns whose type or name Avro does not have."""
        del form
        for field in schema:
            if not is_name(field.name):
                yield Unfit(field.name, str(field.type), name_refusal(field.name))
        yield from unfit(schema, refusal)

    def writer(self, file: BinaryIO, first: pa.RecordBatch, form: PartFormat) -> AvroWriter:
        """Begin a file."""
        return AvroWriter(file, first.schema, form.compression)

    def rows(
        self, file: PlacedFile, form: PartFormat, columns: pa.Schema | None
    ) -> PhysicalPartRows:
        """Open a file; Avro knows fewer types than Arrow, such as two widths of numbers."""
        del form
        return PhysicalPartRows(AvroRows, file, columns)

    def dataset_format(self, form: PartFormat, columns: pa.Schema) -> ds.FileFormat | None:
        """Return None: Arrow has none that reads all types that are written."""
        del form, columns
        return None


class AvroWriter:
    """See `PartWriter`. Row groups are cut into blocks by their rows alone.

    Args:
        file: new and empty.
        schema: the columns.
        compression: the codec.
    """

    def __init__(self, file: BinaryIO, schema: pa.Schema, compression: str) -> None:
        self._file = file
        self._schema = stored_schema(schema)
        codec, self._compress = _CODECS[compression]
        text = json.dumps(avro_schema(self._schema)).encode()
        # Not random, so that the same rows give the same bytes; nothing else has to be like it.
        self._sync = hashlib.md5(text, usedforsecurity=False).digest()
        file.write(write_header({"avro.schema": text, "avro.codec": codec}, self._sync))

    def write(self, rows: pa.RecordBatch) -> None:
        """Write one row group."""
        plain = rows.cast(self._schema)
        per_block = min(_BLOCK_ROWS, max(1, rows.num_rows * _BLOCK_BYTES // max(1, plain.nbytes)))
        for start in range(0, rows.num_rows, per_block):
            block = plain.slice(start, per_block)
            encoded = self._compress(encode_rows(block))
            self._file.write(write_block(block.num_rows, encoded, self._sync))

    def close(self) -> None:
        """Do nothing: a file of Avro has no end."""


def _deflate(rows: bytes) -> bytes:
    deflater = zlib.compressobj(level=6, wbits=-zlib.MAX_WBITS)
    return deflater.compress(rows) + deflater.flush()


def _snappy(rows: bytes) -> bytes:
    compressed: bytes = pa.compress(rows, "snappy", asbytes=True)
    return compressed + zlib.crc32(rows).to_bytes(4, "big")


def _zstandard(rows: bytes) -> bytes:
    compressed: bytes = pa.compress(rows, "zstd", asbytes=True)
    return compressed


_CODECS: Mapping[str, tuple[bytes, Callable[[bytes], bytes]]] = MappingProxyType(
    {
        "deflate": (b"deflate", _deflate),
        "snappy": (b"snappy", _snappy),
        "zstd": (b"zstandard", _zstandard),
        NO_COMPRESSION: (b"null", bytes),
    }
)
"""Compression → its name in the header, and how a block is compressed."""


KIND: PartKind = AvroParts()
