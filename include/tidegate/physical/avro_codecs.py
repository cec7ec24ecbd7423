"""The codecs of Avro blocks. Each returns all bytes of a block, or raises `pa.ArrowInvalid`."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Mapping
from types import MappingProxyType

import pyarrow as pa

Decompress = Callable[[memoryview], bytes]

_CHECKSUM_BYTES = 4
_NO_ZLIB_HEADER = -15


def _deflate(block: memoryview) -> bytes:
    inflater = zlib.decompressobj(_NO_ZLIB_HEADER)
    try:
        rows = inflater.decompress(block)
    except zlib.error as broken:
        raise pa.ArrowInvalid(str(broken)) from broken
    return _whole(rows, ended=inflater.eof)


def _bzip2(block: memoryview) -> bytes:
    decompressor = bz2.BZ2Decompressor()
    try:
        rows = decompressor.decompress(block)
    except OSError as broken:
        raise pa.ArrowInvalid(str(broken)) from broken
    return _whole(rows, ended=decompressor.eof)


def _xz(block: memoryview) -> bytes:
    decompressor = lzma.LZMADecompressor()
    try:
        rows = decompressor.decompress(block)
    except lzma.LZMAError as broken:
        raise pa.ArrowInvalid(str(broken)) from broken
    return _whole(rows, ended=decompressor.eof)


def _whole(rows: bytes, *, ended: bool) -> bytes:
    if not ended:
        problem = "a compressed Avro block ends too early"
        raise pa.ArrowInvalid(problem)
    return rows


def _zstandard(block: memoryview) -> bytes:
    # Blocks need not contain their decompressed length, so that one call is not enough.
    with pa.CompressedInputStream(pa.BufferReader(block), "zstd") as stream:
        return bytes(stream.read())


def _snappy(block: memoryview) -> bytes:
    compressed, checksum = block[:-_CHECKSUM_BYTES], block[-_CHECKSUM_BYTES:]
    rows = bytes(pa.decompress(compressed, _snappy_length(compressed), "snappy", asbytes=True))
    if zlib.crc32(rows) != int.from_bytes(checksum, "big"):
        problem = "an Avro block does not have its checksum"
        raise pa.ArrowInvalid(problem)
    return rows


def _snappy_length(compressed: memoryview) -> int:
    """Return the length of a decompressed block, which snappy writes before it."""
    length = 0
    for index, byte in enumerate(compressed[:5]):
        length |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return length
    problem = "no length before a snappy block"
    raise pa.ArrowInvalid(problem)


CODECS: Mapping[str, Decompress] = MappingProxyType(
    {
        "null": bytes,
        "deflate": _deflate,
        "snappy": _snappy,
        "zstandard": _zstandard,
        "bzip2": _bzip2,
        "xz": _xz,
    }
)
"""By their names in the header."""
