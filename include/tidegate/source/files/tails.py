"""Recognize a file by how it ends, whatever its modification time is (PC-R11).

The end of a Parquet file is its footer: rows, sizes and bounds of every column chunk; that of an
ORC file says as much, and every block of an Avro file ends with a word of its own. Of these it
reads a bounded part. The end of a text says nothing of the rest, so that texts are hashed whole.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from tidegate.source.files.listing import ListedFile

_LEAST_BYTES = 64 << 10
"""Read of each file: smaller ones are compared whole, because equal footers say least of them."""
_DIGITS = 16
_MAGIC = (b"PAR1", b"PARE")
_CHUNK_BYTES = 8 << 20
"""Each is a request to a store."""
_END = 8
"""Bytes after the footer: its length and the magic word."""


def tail_of(file: pa.NativeFile, *, whole: bool = False) -> str:
    """Hash the end of an open file: its footer, and at least the last 64 KiB.

    Args:
        file: open for random reads.
        whole: hash all of it.

    Returns:
        16 hexadecimal digits; equal for files that end alike, whatever their length.
    """
    length = file.size()
    if whole:
        content = hashlib.sha256()
        for at in range(0, length, _CHUNK_BYTES):
            content.update(file.read_at(min(_CHUNK_BYTES, length - at), at))
        return content.hexdigest()[:_DIGITS]
    last = file.read_at(min(_LEAST_BYTES, length), max(0, length - _LEAST_BYTES))
    if last[-4:] in _MAGIC:
        wanted = int.from_bytes(last[-_END:-4], "little") + _END
        if len(last) < wanted <= length:
            last = file.read_at(wanted, length - wanted)
    return hashlib.sha256(last).hexdigest()[:_DIGITS]


def listed_before(
    file: ListedFile, taken: Mapping[str, ListedFile], newest: Mapping[str, ListedFile]
) -> ListedFile | None:
    """Return a file that was taken in, with the tail that was read when it had this time.

    Args:
        file: as a look finds it, without a tail.
        taken: files of the checkpoint by path; in listings of early versions they have no tails.
        newest: files of the last listing by path.

    Returns:
        None if its end has to be read: its stamp changed since, or it was not taken in. That it has
        the same time at two looks would not prove that nothing else was written; the same tag does.
    """
    known = (earlier[file.path] for earlier in (taken, newest) if file.path in earlier)
    if file.path not in taken and not file.tag:
        return None
    found = next((one for one in known if one.stamp == file.stamp), None)
    # What was joined to it stands in its marker, which an earlier version may have written.
    return found._replace(made_of=file.made_of) if found else None
