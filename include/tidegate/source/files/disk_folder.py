"""Look at a folder on a mounted file system: links, and names that are no text (PC-P09)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pyarrow import fs

from tidegate.errors import FolderNotFound, SourceUnreachable
from tidegate.source.files.folder_view import Seen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tidegate.errors import TidegateError
    from tidegate.storage import Storage

_FILES = fs.LocalFileSystem()


class DiskFolder:
    """The `FolderView` of a folder on a disk."""

    def __init__(
        self, storage: Storage, root: str, refuse: Callable[[str, TidegateError], None]
    ) -> None:
        """Prepare.

        Args:
            storage: of the disk.
            root: the folder.
            refuse: called with a path that cannot be read, and the error.
        """
        self._storage = storage
        self._root = root
        self._refuse = refuse
        self._places = [os.path.realpath(root)]
        """The places that are read: the root and the targets of links, with links resolved."""

    def check(self) -> None:
        """See `FolderView`."""
        found = _FILES.get_file_info(self._root).type
        if found != fs.FileType.Directory:
            is_file = found == fs.FileType.File
            problem = "that is a file, no directory" if is_file else "no directory there"
            raise FolderNotFound(source=self._root, problem=problem)

    def entries(self, folder: str) -> list[Seen]:
        """See `FolderView`.

        Raises:
            SourceUnreachable: a link leads to nothing, or a name is no text, and that is refused
                (Transient).
        """
        place = f"{self._root}/{folder}".rstrip("/")
        links = self._links(place, folder)
        return sorted(
            Seen(
                name,
                entry.type == fs.FileType.Directory,
                entry.type == fs.FileType.File,
                entry.size or 0,
                entry.mtime_ns or 0,
                is_link=name in links,
            )
            for name, entry in self._named(place, folder)
        )

    def known(self, marker: str) -> list[str]:
        """Return none: directories are listed one after the other."""
        del marker
        return []

    def look_again(self, folder: str) -> None:
        """Do nothing: each look at a directory is a new one."""

    def known_place(self, path: str) -> str | None:
        """See `FolderView`."""
        place = os.path.realpath(f"{self._root}/{path}")
        if any(_overlap(place, known) for known in self._places):
            return place
        self._places.append(place)
        return None

    def exists(self, path: str) -> bool:
        """See `FolderView`."""
        return self._storage.exists(path)

    def list_names(self, folder: str) -> list[str]:
        """See `FolderView`."""
        return self._storage.list_names(folder)

    def _named(self, place: str, folder: str) -> Iterator[tuple[str, fs.FileInfo]]:
        for entry in _FILES.get_file_info(fs.FileSelector(place)):
            try:
                yield entry.base_name, entry
            except UnicodeDecodeError as unreadable:
                name = repr(unreadable.object)
                problem = f"the name {name} below '{folder or '.'}' is not UTF-8"
                error = SourceUnreachable(source=self._root, problem=problem)
                self._refuse(f"{folder}/{name}".lstrip("/"), error)

    def _links(self, place: str, folder: str) -> set[str]:
        """Name the links in a directory.

        Those that lead to nothing, as to what is not mounted, are refused here: Arrow passes them
        by.
        """
        with os.scandir(place) as entries:
            links = {entry.name: entry.path for entry in entries if entry.is_symlink()}
        lost = [
            name
            for name, link in links.items()
            if not name.startswith(("_", ".")) and not Path(link).exists()
        ]
        for name in sorted(lost):
            path = f"{folder}/{name}".lstrip("/")
            problem = f"the link '{path}' leads to nothing"
            self._refuse(path, SourceUnreachable(source=self._root, problem=problem))
        return set(links)


def _overlap(one: str, other: str) -> bool:
    """Return whether two places are the same, or one contains the other."""
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")
