"""The files of one table, by paths below it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import fs

from tidegate.errors import SourceFileGone, SourceUnreachable
from tidegate.storage import silence_of

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Entry:
    """A file or folder in a listing."""

    name: str
    size_bytes: int
    is_folder: bool


class TableFiles:
    """Opens and lists the files of a table.

    Args:
        root: the table's folder: a path, or a URI that Arrow knows.
    """

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/") or "/"
        if "://" in root:
            self._system, self._base = fs.FileSystem.from_uri(self.root)
        else:
            self._system, self._base = fs.LocalFileSystem(), self.root

    def path(self, below: str) -> str:
        """Return the whole path of a file, as it is named to people."""
        return f"{self.root}/{below}"

    def below(self, path: str) -> str:
        """Return where a file is below the table, from its whole path."""
        return path.removeprefix(self.root).lstrip("/")

    def open(self, below: str) -> pa.NativeFile:
        """Open a file for random reads.

        Raises:
            OSError: it is not there, or cannot be opened.
        """
        return self._system.open_input_file(f"{self._base}/{below}")

    def read(self, below: str) -> bytes:
        """Read a whole file.

        Raises:
            SourceFileGone: it is not there.
            SourceUnreachable: the store does not answer now (Transient).
        """
        with self._answering(below), self.open(below) as file:
            return bytes(file.read())

    def folder(self, below: str) -> list[Entry]:
        """List a folder; a missing one is empty.

        Raises:
            SourceUnreachable: the store does not answer now (Transient).
        """
        place = f"{self._base}/{below}".rstrip("/")
        with self._answering(below):
            found = self._system.get_file_info(fs.FileSelector(place, allow_not_found=True))
        return [
            Entry(info.base_name, info.size or 0, info.type == fs.FileType.Directory)
            for info in sorted(found, key=lambda info: info.base_name)
        ]

    @contextmanager
    def _answering(self, below: str) -> Iterator[None]:
        path = self.path(below)
        try:
            yield
        except (FileNotFoundError, NotADirectoryError) as gone:
            raise SourceFileGone(path=path) from gone
        except OSError as silent:
            problem = str(silent)
            raise (
                silence_of(path, silent) or SourceUnreachable(source=path, problem=problem)
            ) from silent
