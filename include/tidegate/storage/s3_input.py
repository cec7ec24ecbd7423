"""Read ranges of an object, as pyarrow asks for them, and always of the same object."""

from __future__ import annotations

import errno
import io
from typing import TYPE_CHECKING

from tidegate.errors import TransientError
from tidegate.storage.details import FileDetails, nanoseconds
from tidegate.storage.s3_client import MISSING, client_errors, code_of, refusal

if TYPE_CHECKING:
    from tidegate.storage.s3_calls import S3Calls

_WITHOUT_RANGE = frozenset({"416", "InvalidRange"})
"""What a store says of a range of an object without a byte."""
_CHANGED = frozenset({"412", "PreconditionFailed"})
_LEAST_READ = 64 << 10
"""Bytes that are fetched at least: footers and headers are read in many small steps."""


class S3Input(io.RawIOBase):
    """An object that is read where it is.

    Failure: what goes wrong is an `OSError`, with the number that a disk would give, so that
    readers name the file as they do for one of a disk.

    Opening it fetches its last bytes, which most formats begin with. What is read afterwards is of
    the same object, or refused.

    Args:
        calls: to the store.
        path: of the object.

    Raises:
        OSError: it cannot be read; a `FileNotFoundError` if there is none.
    """

    details: FileDetails | None = None
    """What the store said of the object as it was opened; None for one without a byte."""

    def __init__(self, calls: S3Calls, path: str) -> None:
        super().__init__()
        self._calls = calls
        self._path = path
        self._tag: str | None = None
        self._position = 0
        self._kept, self._size = self._end()
        self._kept_at = self._size - len(self._kept)

    def size(self) -> int:
        """Return the bytes of the object."""
        return self._size

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move the position; nothing is read."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, start + offset)
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        """Read from the position on, all of the rest by default."""
        left = max(0, self._size - self._position)
        wanted = left if size is None or size < 0 else min(size, left)
        if not wanted:
            return b""
        found = self._range(self._position, wanted)
        self._position += len(found)
        return found

    def readall(self) -> bytes:
        """Read all of the rest."""
        return self.read()

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read into a buffer."""
        found = self.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def _range(self, start: int, wanted: int) -> bytes:
        at = start - self._kept_at
        if at >= 0 and at + wanted <= len(self._kept):
            return self._kept[at : at + wanted]
        if wanted >= _LEAST_READ:
            return self._fetched(start, wanted)
        # The last bytes are read first, and backwards from there.
        first = min(start, max(0, self._size - _LEAST_READ))
        self._kept = self._fetched(first, min(_LEAST_READ + start - first, self._size - first))
        self._kept_at = first
        return self._kept[start - first : start - first + wanted]

    def _end(self) -> tuple[bytes, int]:
        """Fetch the last bytes; return them, and the size of the object."""
        try:
            content, answer = self._calls.content(self._path, Range=f"bytes=-{_LEAST_READ}")
        except client_errors() as refused:
            if code_of(refused) in _WITHOUT_RANGE:
                return b"", 0
            raise self._as_of_a_disk(refused) from refused
        self._tag = answer.get("ETag")
        # Without a range the store gave all of it.
        size = str(answer.get("ContentRange") or f"/{len(content)}").rpartition("/")[2]
        tag = str(self._tag or "").strip('"')
        self.details = FileDetails(self._path, int(size), nanoseconds(answer["LastModified"]), tag)
        return content, int(size)

    def _fetched(self, start: int, wanted: int) -> bytes:
        try:
            span = {"Range": f"bytes={start}-{start + wanted - 1}"}
            same = {} if self._tag is None else {"IfMatch": self._tag}
            content, _ = self._calls.content(self._path, **span, **same)
        except client_errors() as refused:
            raise self._as_of_a_disk(refused) from refused
        if len(content) != wanted:
            raise OSError(errno.EAGAIN, f"asked for {wanted} bytes, got {len(content)}", self._path)
        return content

    def _as_of_a_disk(self, refused: Exception) -> OSError:
        code = code_of(refused)
        if code in MISSING:
            return FileNotFoundError(errno.ENOENT, "the object is gone", self._path)
        if code in _CHANGED:
            return FileNotFoundError(errno.ENOENT, "another object has its name now", self._path)
        named = refusal(self._path, refused)
        number = errno.EAGAIN if isinstance(named, TransientError) else errno.EACCES
        return OSError(number, str(named), self._path)
