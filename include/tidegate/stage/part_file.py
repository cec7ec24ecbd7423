"""Write one Parquet part file, counting and hashing its bytes as they are written."""

from __future__ import annotations

import hashlib
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.physical.arrays import integer_column

_WRITE_BYTES = 1 << 20
_PAGE_ROWS = 1 << 20
_STEP_ROWS = 1 << 15
_SAMPLE_ROWS = 1_024
# A sample with more distinct values than this may still mean a good dictionary …
_DICTIONARY_SHARE = 0.4
# … if all rows have no more than this share, and the dictionary does not outgrow its page.
_DIFFERENT_SHARE = 0.1
_DICTIONARY_BYTES = 1 << 20


class HashedFile:
    """A file for the Parquet writer that buffers writes and knows its length and SHA-256."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hasher = hashlib.sha256()
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._abandoned = False
        self.length = 0
        self.closed = False

    @property
    def sha256(self) -> str:
        """SHA-256 of all written bytes, in hexadecimal digits."""
        return self._hasher.hexdigest()

    def write(self, content: bytes) -> int:
        """Write bytes; they reach the storage in larger pieces."""
        if not self._abandoned:
            self._hasher.update(content)
            self._waiting.append(bytes(content))
            self._waiting_bytes += len(content)
            self.length += len(content)
            if self._waiting_bytes >= _WRITE_BYTES:
                self._hand_on()
        return len(content)

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self.length

    def flush(self) -> None:
        """Do nothing: only closing completes a part file."""

    def readable(self) -> bool:
        """Return False."""
        return False

    def writable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return False: object stores do not support it."""
        return False

    def close(self) -> None:
        """Write the remaining bytes and close the file."""
        if not self.closed:
            self.closed = True
            try:
                self._hand_on()
            finally:
                self._file.close()

    def abandon(self) -> None:
        """Close without the remaining bytes; errors of the Parquet writer are ignored."""
        self._abandoned = True
        self._waiting.clear()
        if not self.closed:
            self.closed = True
            self._file.close()

    def _hand_on(self) -> None:
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if waiting:
            self._file.write(b"".join(waiting))


class PartFileWriter:
    """One open part file.

    The bytes depend only on the rows of each row group: fixed encodings, and nothing that depends
    on time or process (PC-F11). Failure: an unfinished file stays in its attempt directory, which
    no message names.

    Args:
        file: new and empty.
        first: the first row group, which decides which columns get a dictionary.
    """

    def __init__(self, file: BinaryIO, first: pa.RecordBatch) -> None:
        self.target = HashedFile(file)
        self.rows = 0
        self._writer = pq.ParquetWriter(
            self.target,
            first.schema,
            compression="zstd",
            # Fewer, larger pages and steps: 10 % less CPU; a page still ends at 1 MiB.
            max_rows_per_page=_PAGE_ROWS,
            write_batch_size=_STEP_ROWS,
            use_dictionary=dictionary_columns(first),
        )

    def write(self, rows: pa.RecordBatch) -> None:
        """Write one row group."""
        table = pa.Table.from_batches([rows])
        self._writer.write_table(table, row_group_size=rows.num_rows)
        self.rows += rows.num_rows

    def close(self) -> None:
        """Write the footer."""
        self._writer.close()
        self.target.close()

    def abandon(self) -> None:
        """Abandon the file without a footer."""
        self.target.abandon()
        self._writer.close()


def dictionary_columns(rows: pa.RecordBatch) -> list[str]:
    """Return the columns whose values repeat enough for a dictionary, judged by a sample.

    A dictionary of unique values costs a hash table, is abandoned when it has grown too large, and
    the values are then written plain: three times the work for the same bytes.
    """
    spread = np.arange(0, rows.num_rows, max(1, rows.num_rows // _SAMPLE_ROWS), dtype=np.int64)
    sample = rows.take(integer_column(spread))
    return [
        field.name
        for field, column in zip(sample.schema, sample.columns, strict=True)
        if not pa.types.is_nested(field.type) and _repeats(column, rows.num_rows)
    ]


def _repeats(sample: pa.Array, rows: int) -> bool:
    if pa.types.is_dictionary(sample.type):
        return True
    try:
        different = len(sample.unique())
    except pa.ArrowNotImplementedError:
        # Values of types that Arrow cannot count are rare and written plain.
        return False
    if different <= len(sample) * _DICTIONARY_SHARE:
        return True
    # Of n rows that each have one of d values, about n²/2d repeat the value of an earlier row.
    repeated = len(sample) - different
    values = len(sample) ** 2 / (2 * repeated) if repeated else rows
    is_small = values * sample.nbytes <= len(sample) * _DICTIONARY_BYTES
    return is_small and values <= rows * _DIFFERENT_SHARE
