"""Read a text file as a stream of UTF-8: decompressed, transcoded, and with a known last line.

Text does not say how many rows it has, and is read from its beginning.
"""

from __future__ import annotations

import codecs
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Mapping

BLOCK_BYTES = 4 << 20
"""How much text is parsed at a time."""
MOST_BYTES = 4 * BLOCK_BYTES
"""The most bytes of one row."""
COMPRESSIONS: Mapping[str, str] = MappingProxyType(
    {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".lz4": "lz4"}
)
"""The ending of a file's name → what Arrow calls its compression."""

_UTF8 = frozenset({"utf-8", "utf-8-sig"})
_SAMPLE_BYTES = 64 << 10
_MOST_BYTES_PER_BYTE = 4
"""Into how many bytes of UTF-8 one byte of another encoding can turn."""


def compression_of(path: str) -> str | None:
    """Return the compression that a file's name says; None for plain text."""
    return next((name for end, name in COMPRESSIONS.items() if path.lower().endswith(end)), None)


class TextStream:
    """The text of a file.

    Arrow's readers do not read it themselves: they read ahead in threads, and one of these that
    lets go of an object of Python while the interpreter ends aborts the process.

    Args:
        file: open for random reads; stays open.
        compression: of the whole file; None for plain text.
        encoding: of the text, as Python calls it.
    """

    def __init__(self, file: pa.NativeFile, compression: str | None, encoding: str) -> None:
        self._raw = _Counted(file.get_stream(0, file.size()))
        self._stream: Any = self._raw
        if compression:
            raw = pa.PythonFile(self._raw, mode="r")
            self._stream = pa.CompressedInputStream(raw, compression)
        name = codecs.lookup(encoding).name
        self._decoder = None if name in _UTF8 else codecs.getincrementaldecoder(name)()
        self._left = b""
        self._has_ended = False

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes: as many as asked for, unless the text ends.

        Raises:
            pa.ArrowInvalid: the text does not have the encoding.
            OSError: it is damaged, or its compression is.
        """
        wanted = BLOCK_BYTES if size < 0 else size
        parts, missing = [self._left], wanted - len(self._left)
        while missing > 0 and (part := self._next(missing)):
            parts.append(part)
            missing -= len(part)
        found = b"".join(parts) if parts[0] or len(parts) != 2 else parts[1]
        self._left = found[wanted:]
        return found[:wanted] if self._left else found

    @property
    def has_ended(self) -> bool:
        """Whether all of the file was read."""
        return self._has_ended

    @property
    def consumed_bytes(self) -> int:
        """How many bytes of the file were read so far."""
        return self._raw.position

    def _next(self, size: int) -> bytes:
        while not self._has_ended:
            step = size if self._decoder is None else max(1, size // _MOST_BYTES_PER_BYTE)
            content: bytes = self._stream.read(step)
            self._has_ended = not content
            text = self._decoded(content)
            if text:
                return text
        return b""

    def _decoded(self, content: bytes) -> bytes:
        if self._decoder is None:
            return content
        try:
            return self._decoder.decode(content, final=self._has_ended).encode()
        except UnicodeDecodeError as broken:
            raise pa.ArrowInvalid(str(broken)) from broken


class _Counted:
    """A stream that tells how far it was read: Arrow's do not, if they are decompressed."""

    def __init__(self, stream: pa.NativeFile) -> None:
        self.closed = False
        self.position = 0
        self._stream = stream

    def read(self, size: int) -> bytes:
        content: bytes = self._stream.read(size)
        self.position += len(content)
        return content

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True


def memory_file(content: bytes) -> pa.BufferReader:
    """Return bytes as a file that Arrow's threads can let go of at any time, see `TextStream`."""
    sink = pa.BufferOutputStream()
    sink.write(content)
    return pa.BufferReader(sink.getvalue())


def estimated_rows(file: pa.NativeFile, stream: TextStream, header: int) -> int:
    """Estimate the rows of a text from the lines at its beginning; at least 1.

    It depends on nothing but the content, so that a file is planned twice in the same way.

    Args:
        file: what the text was read from.
        stream: the text from its beginning.
        header: how many lines are no rows.
    """
    sample = stream.read(_SAMPLE_BYTES)
    if stream.has_ended:
        return max(1, sample.rstrip().count(b"\n") + 1 - header)
    lines = sample.count(b"\n")
    return max(1, lines * int(file.size()) // max(1, stream.consumed_bytes))
