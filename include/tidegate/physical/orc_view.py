"""Read a file with a different end, without copying it."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


class WithOtherEnd(io.RawIOBase):
    """Reads a file up to some byte, and other bytes after it.

    Args:
        file: open for random reads; not closed with this.
        length: bytes of the file that are kept.
        end: the bytes that follow them.
    """

    def __init__(self, file: pa.NativeFile, length: int, end: bytes) -> None:
        super().__init__()
        self._file = file
        self._length = length
        self._end = end
        self._at = 0

    def read(self, size: int = -1) -> bytes:
        """Read from the current position."""
        whole = self._length + len(self._end)
        stop = whole if size < 0 else min(whole, self._at + size)
        found = b""
        if self._at < self._length:
            self._file.seek(self._at)
            found = self._file.read(min(stop, self._length) - self._at)
        first = max(self._at - self._length, 0)
        found += self._end[first : max(stop - self._length, first)]
        self._at += len(found)
        return found

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move the current position."""
        starts = {
            os.SEEK_SET: 0,
            os.SEEK_CUR: self._at,
            os.SEEK_END: self._length + len(self._end),
        }
        self._at = starts[whence] + offset
        return self._at

    def tell(self) -> int:
        """Return the current position."""
        return self._at

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True
