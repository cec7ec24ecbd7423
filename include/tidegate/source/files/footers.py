"""Read what the columns of new files are, side by side."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors import TerminalError
from tidegate.source.files.columns import encode_schema, joined
from tidegate.source.files.format import open_listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from tidegate.source.files.listing import ListedFile

THREADS = 2
FILES_PER_CALL = 64
"""Handing over one file costs more than reading its footer."""


@dataclass(frozen=True)
class FolderColumns:
    """The columns of a folder as far as its files could be read."""

    schema: pa.Schema
    unreadable: TerminalError | None = None
    """What the first file said that could not; it is no error before its rows are wanted."""

    @property
    def text(self) -> str | None:
        """The schema as a listing keeps it; None where a file could not be read."""
        return None if self.unreadable else encode_schema(self.schema)


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
            schema
            for schemas in pool.map(
                lambda chunk: [_schema(root, file) for file in chunk], chunks(files)
            )
            for schema in schemas
        ]
    unreadable = next((each for each in found if isinstance(each, TerminalError)), None)
    readable = dict.fromkeys(each for each in found if not isinstance(each, TerminalError))
    return FolderColumns(joined(known, readable), unreadable)


def _schema(root: str, file: ListedFile) -> pa.Schema | TerminalError:
    try:
        with open_listed(f"{root}/{file.path}", file.size, file.modified) as opened:
            return opened.schema
    except TerminalError as unreadable:
        return unreadable
