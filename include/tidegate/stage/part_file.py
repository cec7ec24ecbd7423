"""Write one part file, counting and hashing its bytes as they are written."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, BinaryIO, cast

from tidegate.model.part_format import PARQUET, PartFormat
from tidegate.physical.parts import begin_part
from tidegate.storage import Deferred, WriteOnly

if TYPE_CHECKING:
    import pyarrow as pa

    from tidegate.model.upload import Upload

_WRITE_BYTES = 1 << 20


class HashedFile(WriteOnly):
    """A file for the writer of a format that buffers writes and knows its length and SHA-256."""

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

    @property
    def upload(self) -> Upload | None:
        """What has to be completed before there is a file, once this is closed; else None."""
        return self._file.upload if isinstance(self._file, Deferred) else None

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

    def close(self) -> None:
        """Write the remaining bytes and close the file."""
        if not self.closed:
            self.closed = True
            try:
                self._hand_on()
            finally:
                self._file.close()

    def abandon(self) -> None:
        """Close without the remaining bytes; errors of its writer are ignored."""
        self._abandoned = True
        if self.closed:
            return
        self.closed = True
        if isinstance(self._file, Deferred):
            self._file.give_up()
        else:
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
        first: the first row group, which may decide the encoding.
        form: format and options.
    """

    def __init__(self, file: BinaryIO, first: pa.RecordBatch, form: PartFormat = PARQUET) -> None:
        self.target = HashedFile(file)
        self.rows = 0
        self._writer = begin_part(cast("BinaryIO", self.target), first, form)

    def write(self, rows: pa.RecordBatch) -> None:
        """Write one row group."""
        self._writer.write(rows)
        self.rows += rows.num_rows

    def close(self) -> None:
        """Write the end of the file."""
        self._writer.close()
        self.target.close()

    def abandon(self) -> None:
        """Abandon the file without its end."""
        self.target.abandon()
        self._writer.close()
