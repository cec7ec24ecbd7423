"""Recognize a file by how it ends, whatever its modification time is (PC-R11).

The end of a Parquet file is its footer: rows, sizes and bounds of every column chunk. Reads a
bounded part of a file, and nothing else.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.storage import silence_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidegate.source.files.listing import ListedFile

_LEAST_BYTES = 64 << 10
"""Read of each file: smaller ones are compared whole, because equal footers say least of them."""
_DIGITS = 16
_MAGIC = (b"PAR1", b"PARE")
_END = 8
"""Bytes after the footer: its length and the magic word."""


def tail_of(file: pa.NativeFile) -> str:
    """Hash the end of an open file: its footer, and at least the last 64 KiB.

    Returns:
        16 hexadecimal digits; equal for files that end alike, whatever their length.
    """
    length = file.size()
    last = file.read_at(min(_LEAST_BYTES, length), max(0, length - _LEAST_BYTES))
    if last[-4:] in _MAGIC:
        wanted = int.from_bytes(last[-_END:-4], "little") + _END
        if len(last) < wanted <= length:
            last = file.read_at(wanted, length - wanted)
    return hashlib.sha256(last).hexdigest()[:_DIGITS]


def listed_tail(root: str, file: ListedFile) -> str:
    """Hash the end of a file that was just listed.

    Returns:
        The hash; empty if the file cannot be read, or has another length by now.

    Raises:
        StorageSilent: the file system does not answer now (Transient).
    """
    path = f"{root}/{file.path}"
    try:
        with pa.OSFile(path) as opened:
            return tail_of(opened) if opened.size() == file.size else ""
    except OSError as refused:
        silent = silence_of(path, refused)
        if silent is not None:
            raise silent from refused
        return ""


def listed_before(
    file: ListedFile, taken: Mapping[str, ListedFile], newest: Mapping[str, ListedFile]
) -> ListedFile | None:
    """Return a file that was taken in, with the tail that was read when it had this time.

    Args:
        file: as a look finds it, without a tail.
        taken: files of the checkpoint by path; in listings of early versions they have no tails.
        newest: files of the last listing by path.

    Returns:
        None if its end has to be read: its length or time changed since, or it was not taken in.
        That it has the same time at two looks would not prove that nothing else was written.
    """
    known = (earlier[file.path] for earlier in (taken, newest) if file.path in earlier)
    if file.path not in taken:
        return None
    return next(
        (one for one in known if (one.size, one.modified) == (file.size, file.modified)), None
    )
