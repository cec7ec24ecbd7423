"""Find the blocks of a log file, and read their headers (HUDI-L1 to L3, format version 1).

The content of blocks is not read: a log is walked from length to length.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from tidegate.errors import LogBlockUnreadable, NoLogFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

MAGIC = b"#HUDI#"
_LENGTH = struct.Struct(">Q")
_NUMBER = struct.Struct(">I")
_FORMAT_VERSION = 1
_SMALLEST = len(MAGIC) + 4 * _NUMBER.size + 3 * _LENGTH.size
"""Bytes of a block without any header."""
_LOOK_AHEAD = 1 << 16
"""Bytes of a block that are read for its header; more are read if the header needs them."""
_CHUNK = 1 << 20


class BlockType(IntEnum):
    """The types of blocks, by their number in the file."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    """Never stored: a span of a file that is no block (HUDI-L2)."""
    AVRO = 3
    HFILE = 4
    PARQUET = 5
    CDC = 6


_STORED = frozenset(BlockType) - {BlockType.CORRUPT}


class Header(IntEnum):
    """The keys of a block's header that are used."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    IS_PARTIAL = 7


@dataclass(frozen=True)
class Block:
    """One block of a log file, without its content."""

    path: str
    type: BlockType
    header: Mapping[int, str]
    """Key → value; keys that are not known are kept (HUDI-L1)."""
    offset: int
    """Where the content begins in the file; of a corrupt span, where the span begins."""
    length: int
    """Bytes of the content, or of the corrupt span."""
    file_format: str | None = None
    """Of a native log, which is one block of its whole content; None: it is part of a log."""
    content_version: int | None = None
    """What the content of a delete block begins with; None if there is no such number."""

    @property
    def instant(self) -> str:
        """The requested time of the write; empty if the header has none."""
        return self.header.get(Header.INSTANT_TIME, "")

    @property
    def is_rollback(self) -> bool:
        """Whether it takes back the blocks of another instant."""
        is_command = self.type is BlockType.COMMAND
        return is_command and self.header.get(Header.COMMAND_BLOCK_TYPE, "0") == "0"

    @property
    def target(self) -> str:
        """The instant whose blocks a rollback takes back."""
        return self.header.get(Header.TARGET_INSTANT_TIME, "")

    @property
    def is_partial(self) -> bool:
        """Whether its records have only some columns (HUDI-M12)."""
        return self.header.get(Header.IS_PARTIAL, "").lower() == "true"

    @property
    def compacted(self) -> tuple[str, ...]:
        """The instants whose blocks it stands for (HUDI-M3)."""
        said = self.header.get(Header.COMPACTED_BLOCK_TIMES, "")
        return tuple(time.strip() for time in said.split(",") if time.strip())


def read_blocks(file: pa.NativeFile, path: str, length: int) -> Iterator[Block]:
    """Walk over the blocks of a log file, in their order.

    Args:
        file: open for random reads.
        path: of the file, for errors and for finding the content again.
        length: the bytes that are read; what a file has behind them was written later.

    Raises:
        NoLogFile: the file does not begin with a block.
        LogBlockUnreadable: a block has a type or format that is not known, or a damaged header.
    """
    position = 0
    while position < length:
        block, end = _block_at(file, path, position, length)
        if block is None:
            found = _read(file, position, len(MAGIC), length)
            if position == 0 and not MAGIC.startswith(found):
                raise NoLogFile(path=path, problem=f"`{found.hex(' ')}`")
            end = _next_magic(file, position + len(MAGIC), length)
            block = Block(path, BlockType.CORRUPT, {}, position, end - position)
        yield block
        position = end


def _block_at(
    file: pa.NativeFile, path: str, position: int, length: int
) -> tuple[Block | None, int]:
    """Read the block at a position; None if there is no whole one (HUDI-L2)."""
    lead = _read(file, position, _LOOK_AHEAD, length)
    if len(lead) < _SMALLEST or not lead.startswith(MAGIC):
        return None, position
    (size,) = _LENGTH.unpack_from(lead, len(MAGIC))
    start = position + len(MAGIC) + _LENGTH.size
    end = start + size
    if end > length or size < _SMALLEST - len(MAGIC) - _LENGTH.size:
        return None, position
    trailer = _read(file, end - _LENGTH.size, _LENGTH.size + len(MAGIC), length)
    if trailer[: _LENGTH.size] != _LENGTH.pack(size + len(MAGIC)):
        return None, position
    # Fewer bytes than the magic has are a torn block, and nothing that this one ran into.
    following = trailer[_LENGTH.size :]
    if len(following) == len(MAGIC) and following != MAGIC:
        return None, position
    span = _Span(file, start, end, lead[start - position :])
    return _parsed(span, path), end


def _parsed(span: _Span, path: str) -> Block:
    try:
        version, kind = span.number(), span.number()
        if version != _FORMAT_VERSION or kind not in _STORED:
            problem = f"type {kind} in format version {version}"
            raise LogBlockUnreadable(path=path, offset=span.start, problem=problem)
        header = span.header()
        content = span.long()
        offset = span.position
        span.skip(content)
        has_version = kind == BlockType.DELETE and content >= _NUMBER.size
        deletes = span.number_at(offset) if has_version else None
    except EOFError as beyond:
        problem = "its header or content is longer than the block"
        raise LogBlockUnreadable(path=path, offset=span.start, problem=problem) from beyond
    return Block(path, BlockType(kind), header, offset, content, content_version=deletes)


class _Span:
    """Reads numbers and texts of one block, from bytes that are there already if it can.

    Raises:
        EOFError: the block ends before what is read.
    """

    def __init__(self, file: pa.NativeFile, start: int, end: int, lead: bytes) -> None:
        self._file = file
        self._lead = lead
        self._end = end
        self.start = start
        self.position = start

    def number(self) -> int:
        """Read a number of four bytes."""
        return int(_NUMBER.unpack(self._take(_NUMBER.size))[0])

    def number_at(self, position: int) -> int:
        """Read a number of four bytes elsewhere in the block, without moving."""
        here, self.position = self.position, position
        found = self.number()
        self.position = here
        return found

    def long(self) -> int:
        """Read a number of eight bytes."""
        return int(_LENGTH.unpack(self._take(_LENGTH.size))[0])

    def header(self) -> dict[int, str]:
        """Read a header or footer."""
        pairs = ((self.number(), self._take(self.number())) for _ in range(self.number()))
        return {key: text.decode(errors="replace") for key, text in pairs}

    def skip(self, size: int) -> None:
        """Move on without reading."""
        self.position += size
        if self.position > self._end:
            raise EOFError

    def _take(self, size: int) -> bytes:
        start = self.position
        self.skip(size)
        known = self._lead[start - self.start : self.position - self.start]
        return known if len(known) == size else _read(self._file, start, size, self._end)


def _next_magic(file: pa.NativeFile, position: int, length: int) -> int:
    """Return where the next block begins; the end of the file if there is none."""
    while position < length:
        chunk = _read(file, position, _CHUNK, length)
        found = chunk.find(MAGIC)
        if found >= 0:
            return position + found
        if position + len(chunk) >= length:
            break
        position += len(chunk) - len(MAGIC) + 1
    return length


def _read(file: pa.NativeFile, position: int, size: int, length: int) -> bytes:
    """Read bytes of a file that are before its length; fewer at its end."""
    file.seek(position)
    return bytes(file.read(max(0, min(size, length - position))))
