"""Spread rows over buckets in one file, and gather one bucket of many files (ICE-3.13).

A file consists of rounds, each with one Arrow record batch per bucket, in the order of the buckets.
A bucket's batches are therefore known by their numbers, and nothing else of a file is read. Each
batch has a checksum of its rows and its position, because a file may be read long after it was
written.
"""

from __future__ import annotations

import zlib
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from tidegate.model.settling import ROW_ID
from tidegate.physical.arrays import Integers, flags, integer_column
from tidegate.read.row_hash import Hashes, hash_rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

BUCKET_BITS = 32
"""The place of a row: its bucket above these bits, and its order within the bucket below them."""
_ROUND_BYTES = 32 << 20
"""Memory for rows before they are written; more memory means fewer, larger batches per bucket."""
_MOST_BY_RADIX = (1 << 16) - 1
_CHECKSUM, _END = b"tidegate.crc32", b"tidegate.end"
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)


class Placement(Protocol):
    """Assigns rows to buckets."""

    @property
    def buckets(self) -> int:
        """The number of buckets, at least 1."""
        ...

    def of(self, batch: pa.RecordBatch) -> Hashes:
        """Return the place of each row, see `BUCKET_BITS`; rows of the same place keep their order.

        Returns:
            uint64[n].
        """
        ...


class KeyPlacement:
    """Places rows by key: those with equal keys share a bucket."""

    def __init__(self, columns: tuple[str, ...], buckets: int, *, by_row_id: bool = False) -> None:
        """Choose the columns that decide the place of a row.

        Args:
            columns: the columns of the key.
            buckets: their number, at least 1.
            by_row_id: rows that have a `_row_id` are placed by it instead.
        """
        self._columns = columns
        self._by_row_id = by_row_id
        self.buckets = buckets

    def of(self, batch: pa.RecordBatch) -> Hashes:
        """Return the place of each row, in input order."""
        hashes = hash_rows([batch.column(name) for name in self._columns], batch.num_rows)
        if self._by_row_id:
            identities = batch.column(ROW_ID)
            known = flags(identities.is_valid())
            hashes[known] = hash_rows([identities], batch.num_rows)[known]
        return (hashes % np.uint64(self.buckets)) << np.uint64(BUCKET_BITS)


def gather(file: pa.NativeFile, bucket: int, buckets: int, name: str) -> Iterator[pa.RecordBatch]:
    """Read the rows of one bucket, in the order in which they were written.

    Raises:
        pa.ArrowInvalid, OSError: the file was not written under this name.
    """
    reader = pa.ipc.open_file(file)
    origin = _origin(name, reader.schema)
    last = reader.num_record_batches - 1
    _checked(reader, last, origin, _END)
    for number in range(bucket, last, buckets):
        batch = _checked(reader, number, origin, _CHECKSUM)
        if batch.num_rows:
            yield batch


class SpreadWriter:
    """Writes rows to one file in rounds of one batch per bucket.

    Args:
        file: a new file, which is not closed.
        schema: the schema of the rows.
        buckets: the number of buckets, at least 1.
        name: the name of the file, by which a misplaced file is noticed.
    """

    def __init__(self, file: BinaryIO, schema: pa.Schema, buckets: int, name: str) -> None:
        self.rows = 0
        """The number of rows taken."""
        self._arrow_file = pa.ipc.new_file(file, schema, options=_OPTIONS)
        self._schema = schema
        self._starts = np.arange(buckets + 1, dtype=np.uint64) << np.uint64(BUCKET_BITS)
        self._origin = _origin(name, schema)
        self._waiting: list[tuple[pa.RecordBatch, Hashes]] = []
        self._waiting_bytes = 0
        self._batches = 0

    def append(self, batch: pa.RecordBatch, places: Hashes) -> None:
        """Append rows, which are written when a round is full.

        Args:
            batch: n rows of the schema.
            places: uint64[n], see `Placement.of`.
        """
        # Before, not after: the texts of one round must fit in one batch.
        if self._waiting and self._waiting_bytes + batch.nbytes > _ROUND_BYTES:
            self._write_round()
        self._waiting.append((batch, places))
        self._waiting_bytes += batch.nbytes
        self.rows += batch.num_rows

    def end(self) -> None:
        """Write the remaining rows, and an end mark after the last batch."""
        if self._waiting:
            self._write_round()
        batch = pa.RecordBatch.from_pylist([], schema=self._schema)
        checksum = _checksum(batch, self._origin, self._batches)
        self._arrow_file.write_batch(batch, custom_metadata={_END: checksum})

    def close(self) -> None:
        """Write the footer; a file that was closed without `end` is rejected by `gather`."""
        self._arrow_file.close()

    def _write_round(self) -> None:
        whole = pa.concat_batches([batch for batch, _ in self._waiting])
        places = np.concatenate([places for _, places in self._waiting])
        self._waiting, self._waiting_bytes = [], 0
        order = _order(places)
        sorted_rows = whole.take(integer_column(order))
        bounds = np.searchsorted(places[order], self._starts).tolist()
        for start, end in pairwise(bounds):
            batch = sorted_rows.slice(start, end - start)
            checksum = _checksum(batch, self._origin, self._batches)
            self._arrow_file.write_batch(batch, custom_metadata={_CHECKSUM: checksum})
            self._batches += 1


def _order(places: Hashes) -> Integers:
    """Sort places; rows of the same place keep their order."""
    buckets = places >> np.uint64(BUCKET_BITS)
    within = places & np.uint64((1 << BUCKET_BITS) - 1)
    if max(buckets.max(initial=0), within.max(initial=0)) > _MOST_BY_RADIX:
        return np.argsort(places, kind="stable")
    # NumPy uses radix sort for 16-bit integers: two such sorts take less than half the time.
    order = np.argsort(within.astype(np.uint16), kind="stable")
    return order[np.argsort(buckets.astype(np.uint16)[order], kind="stable")]


def _checked(
    reader: pa.ipc.RecordBatchFileReader, number: int, origin: int, key: bytes
) -> pa.RecordBatch:
    found = reader.get_batch_with_custom_metadata(number)
    if (found.custom_metadata or {}).get(key) != _checksum(found.batch, origin, number):
        msg = f"batch {number} with other rows than were written"
        raise pa.ArrowInvalid(msg)
    return found.batch


def _origin(name: str, schema: pa.Schema) -> int:
    return zlib.crc32(schema.serialize(), zlib.crc32(name.encode()))


def _checksum(batch: pa.RecordBatch, origin: int, number: int) -> bytes:
    place = zlib.crc32(b"%d" % number, origin)
    # In IPC form, which is the same for a slice and for the batch read back.
    return b"%08x" % zlib.crc32(batch.serialize(), place)
