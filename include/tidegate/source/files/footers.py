"""Read the columns of new files, in parallel."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from tidegate.errors import TerminalError
from tidegate.source.files.columns import joined
from tidegate.source.files.reader import open_listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from tidegate.source.files.listing import ListedFile

_THREADS = 2
_FILES_PER_CALL = 64
"""Submitting one file to a thread costs more than reading its footer."""

_Said = TypeVar("_Said")


@dataclass(frozen=True)
class FolderColumns:
    """The columns of a folder, as far as its files could be read."""

    schema: pa.Schema
    unread: Mapping[str, TerminalError] = field(default_factory=dict)
    """The files that could not be read, by path; an error only once their rows are needed."""


def side_by_side(
    files: Sequence[ListedFile], read: Callable[[ListedFile], _Said]
) -> Iterator[_Said]:
    """Read files in threads, many per call, and yield the results in their order."""
    calls = [files[at : at + _FILES_PER_CALL] for at in range(0, len(files), _FILES_PER_CALL)]
    with ThreadPoolExecutor(_THREADS) as pool:
        for found in pool.map(lambda call: [read(file) for file in call], calls):
            yield from found


def read_columns(root: str, files: Sequence[ListedFile], known: pa.Schema) -> FolderColumns:
    """Add the columns of files to those that are known.

    Args:
        root: directory that their paths are relative to.
        files: in the order in which their columns are added.
        known: the columns of the files before them.

    Raises:
        StorageSilent: the file system does not answer now (Transient).
    """
    found = list(side_by_side(files, lambda file: (file.path, _schema(root, file))))
    unread = {path: said for path, said in found if isinstance(said, TerminalError)}
    readable = dict.fromkeys(said for path, said in found if path not in unread)
    return FolderColumns(joined(known, readable), unread)


def _schema(root: str, file: ListedFile) -> pa.Schema | TerminalError:
    try:
        with open_listed(f"{root}/{file.path}", file.size, file.modified) as opened:
            return opened.schema
    except TerminalError as unreadable:
        return unreadable
