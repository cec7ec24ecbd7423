"""Decode deletion vectors: framed, checksummed 64-bit roaring bitmaps (ICE-4.13, 6.6)."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np
from pyroaring import BitMap64

from tidegate.errors import CorruptDeletes
from tidegate.physical.arrays import integer_column
from tidegate.source.iceberg.table.paths import open_location

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.io import FileIO

    from tidegate.model.file_slice import Delta

_MAGIC = bytes.fromhex("d1d33964")
_LENGTH = _CHECKSUM = 4
_LARGEST = (1 << 63) - 1
_MAGIC_BYTES = 4
_FOOTER_BYTES = 16
"""The least size of a Puffin file: both magics, flags and the length of an empty payload."""


def read_vector(files: FileIO, vector: Delta, source: str) -> pa.Int64Array:
    """Read the positions of one deletion vector with one range request.

    Args:
        files: access to the table's files.
        vector: a delete file of content `vector`.
        source: the table, for errors.

    Returns:
        The positions, ascending and unique.

    Raises:
        CorruptDeletes: the blob does not match its manifest entry or the specification.
        SourceFileGone, SourceFileDamaged, SourceUnreachable: see `open_location`.
    """
    if vector.offset is None or vector.blob_bytes is None:
        raise CorruptDeletes(
            path=vector.path, expected="offset and size of a deletion vector", found="neither"
        )
    first, last = vector.offset, vector.offset + vector.blob_bytes
    if first < _MAGIC_BYTES or last > vector.file_bytes - _FOOTER_BYTES:
        # Some early writers wrote a blob alone to a file, without the Puffin file around it.
        inside = f"a blob between the magic and the footer of {vector.file_bytes} bytes of Puffin"
        found = f"one from {first} to {last}"
        raise CorruptDeletes(path=vector.path, expected=inside, found=found)
    with open_location(files, vector.path, source) as file:
        blob = file.read_at(vector.blob_bytes, vector.offset)
    if len(blob) != vector.blob_bytes:
        expected = f"{vector.blob_bytes} bytes at {vector.offset}"
        raise CorruptDeletes(path=vector.path, expected=expected, found=str(len(blob)))
    return decode_vector(blob, vector.rows, f"{vector.path} at {vector.offset}")


def decode_vector(blob: bytes, cardinality: int, path: str) -> pa.Int64Array:
    """Decode the blob of one deletion vector.

    Args:
        blob: length, magic, bitmap and CRC-32, nothing else.
        cardinality: the number of positions according to the manifest.
        path: for errors.

    Raises:
        CorruptDeletes: one of them is wrong.
    """
    framed = blob[_LENGTH:-_CHECKSUM]
    _check(path, "magic", _MAGIC.hex(), framed[: len(_MAGIC)].hex())
    _check(path, "length of the bitmap", len(framed), int.from_bytes(blob[:_LENGTH], "big"))
    _check(path, "CRC-32", int.from_bytes(blob[-_CHECKSUM:], "big"), zlib.crc32(framed))
    positions = _positions(framed[len(_MAGIC) :], path)
    _check(path, "number of positions", cardinality, len(positions))
    return positions


def _check(path: str, what: str, expected: object, found: object) -> None:
    if expected != found:
        raise CorruptDeletes(path=path, expected=f"the {what} {expected}", found=str(found))


def _positions(bitmap: bytes, path: str) -> pa.Int64Array:
    try:
        found = np.asarray(BitMap64.deserialize(bitmap).to_array(), dtype=np.uint64)
    except (ValueError, IndexError, MemoryError) as broken:
        raise CorruptDeletes(path=path, expected="a roaring bitmap", found=str(broken)) from broken
    if len(found) and int(found[-1]) > _LARGEST:
        raise CorruptDeletes(path=path, expected="positions of 63 bits", found=str(found[-1]))
    return integer_column(found.view(np.int64))
