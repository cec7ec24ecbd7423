"""Copy a source file that becomes a part file as it is, and check the copy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors import SourceFileDamaged
from tidegate.physical.parquet_footer import FileEnd
from tidegate.stage.part_file import HashedFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

    from tidegate.model.message import EventTimes
    from tidegate.model.partition import Partition
    from tidegate.physical.whole_file import WholeFile
    from tidegate.storage import Storage

_BLOCK = 8 << 20


@dataclass(frozen=True, eq=False)
class WholePart:
    """A source file all of whose rows belong to one partition, to be copied."""

    file: WholeFile
    look_again: Callable[[], WholeFile | None]
    """Opens the file again, and raises the errors that reading it would raise."""
    partition: Partition
    event_times: EventTimes

    @property
    def rows(self) -> int:
        """All rows of the file."""
        return self.file.footer.rows


def copy_whole(storage: Storage, part: WholePart, path: str) -> None:
    """Copy a file, then compare copy and source with the file that was chosen.

    Damage inside a page is detected only if the page is decoded, which it is not here.

    *Failure:* a part of the copy stays in the attempt's directory, which no message names.

    Args:
        storage: where the copy goes.
        part: the file.
        path: the path of the copy, which does not exist yet.

    Raises:
        SourceFileGone, SourceFileDamaged: the file changed since its footer was read; each kind of
            source may have its own errors.
        StorageFull: no space is left (Transient).
    """
    decided = part.file.footer.end
    try:
        storage.copy_new(part.file.path, path)
    finally:
        # Before the copy is judged: if the source changed, its own error is more precise.
        now = part.look_again()
    if now is None or now.footer.end != decided or _end_of(storage, path) != decided:
        raise _changed(part)


def send_whole(storage: Storage, part: WholePart, file: BinaryIO) -> HashedFile:
    """Send a file to where it is published, where nobody can read it again; see `copy_whole`.

    Args:
        storage: where the file is.
        part: the file.
        file: new and empty; closed, or given up where this fails.

    Raises:
        SourceFileGone, SourceFileDamaged: see `copy_whole`.
    """
    sent = HashedFile(file)
    try:
        try:
            with storage.open_input(part.file.path) as source:
                while block := source.read(_BLOCK):
                    sent.write(block)
        finally:
            now = part.look_again()
        _check_same(part, now, sent.length)
        sent.close()
    except BaseException:
        sent.abandon()
        raise
    return sent


def _check_same(part: WholePart, now: WholeFile | None, length: int) -> None:
    end = part.file.footer.end
    if now is None or now.footer.end != end or length != end.length:
        raise _changed(part)


def _changed(part: WholePart) -> SourceFileDamaged:
    expected = f"expected {part.file.footer.end.length} bytes and one footer while it is copied"
    return SourceFileDamaged(path=part.file.path, problem=f"{expected}, found others")


def _end_of(storage: Storage, path: str) -> FileEnd:
    with storage.open_input(path) as copy:
        return FileEnd.of(copy)
