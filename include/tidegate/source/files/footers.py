"""Read what the columns of new files are, side by side."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidegate.errors import TerminalError
from tidegate.source.files.columns import joined
from tidegate.source.files.format import open_listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from tidegate.source.files.listing import ListedFile

THREADS = 2
FILES_PER_CALL = 64
"""Handing over one file costs more than reading its footer."""


@dataclass(frozen=True)
class FolderColumns:
    """The columns of a folder as far as its files could be read."""

    schema: pa.Schema
    unread: Mapping[str, TerminalError] = field(default_factory=dict)
    """What could not be read, by path; it is no error before its rows are wanted."""


def chunks(files: Sequence[ListedFile]) -> list[Sequence[ListedFile]]:
    """Divide files into what one call reads."""
    return [files[at : at + FILES_PER_CALL] for at in range(0, len(files), FILES_PER_CALL)]


def read_columns(root: str, files: Sequence[ListedFile], known: pa.Schema) -> FolderColumns:
    """Add the columns of files to those that are known.

    Args:
        root: directory that their paths are relative to.
        files: in the order in which their columns are added.
        known: of the files before them.

    Raises:
        StorageSilent: the file system does not answer now (Transient).
    """
    with ThreadPoolExecutor(THREADS) as pool:
        found = [
            told
            for chunk in pool.map(
                lambda chunk: [(file.path, _schema(root, file)) for file in chunk], chunks(files)
            )
            for told in chunk
        ]
    unread = {path: said for path, said in found if isinstance(said, TerminalError)}
    readable = dict.fromkeys(said for path, said in found if path not in unread)
    return FolderColumns(joined(known, readable), unread)


def _schema(root: str, file: ListedFile) -> pa.Schema | TerminalError:
    try:
        with open_listed(f"{root}/{file.path}", file.size, file.modified) as opened:
            return opened.schema
    except TerminalError as unreadable:
        return unreadable
