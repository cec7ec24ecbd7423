"""Look at a folder of objects: all of it is listed at once, because each request takes its time.

There is no directory without an object in it. Objects that consoles and Hadoop make for directories
(`folder/`, `folder_$folder$`) are none of the files, unless `folder/` has bytes.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from tidegate.errors import FolderNotFound, ObjectNamedAsFolder, SourceUnreachable
from tidegate.model.revision_folder import partition_of, revision_of
from tidegate.source.files.folder_view import Seen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tidegate.errors import TidegateError
    from tidegate.storage import FileDetails, Storage

_HADOOP = "_$folder$"
_SLASHES_OF_A_BUCKET = 2


def _is_hidden(folder: str) -> bool:
    """Return whether a directory is passed by; that of a revision is not."""
    names = partition_of(folder).split("/")
    return any(name.startswith(("_", ".")) for name in names)


class StoreFolder:
    """The `FolderView` of a folder in a store."""

    def __init__(
        self, storage: Storage, root: str, refuse: Callable[[str, TidegateError], None]
    ) -> None:
        """List all objects of the folder.

        Args:
            storage: of the objects.
            root: the folder.
            refuse: called with a path that cannot be read, and the error.
        """
        self._storage = storage
        self._root = root
        self._refuse = refuse
        self._tree: dict[str, dict[str, Seen]] = {}
        """By folder, then by name, with a slash behind those of folders: an object may have the
        name of a folder."""
        self._add("", storage.list_details(root))

    def check(self) -> None:
        """See `FolderView`."""
        is_bucket = self._root.count("/") == _SLASHES_OF_A_BUCKET
        if self._tree or is_bucket:
            return
        if self._storage.length(self._root) is not None:
            problem = "that is an object, no folder of objects"
            raise FolderNotFound(source=self._root, problem=problem)
        # It may have been made for a folder, and nothing put into it yet.
        if not self._storage.exists(self._root):
            raise FolderNotFound(source=self._root, problem="no object there")

    def entries(self, folder: str) -> list[Seen]:
        """See `FolderView`."""
        return sorted(self._tree.get(folder, {}).values())

    def known(self, marker: str) -> list[str]:
        """See `FolderView`."""
        folders = [folder for folder, names in self._tree.items() if marker in names]
        newest: dict[str, str] = {}
        for folder in sorted(folders):
            newest[partition_of(folder) if revision_of(folder) else folder] = folder
        shown = [each for each in newest.values() if not _is_hidden(each)]
        return [f"{folder}/{marker}".lstrip("/") for folder in shown]

    def look_again(self, folder: str) -> None:
        """List a directory and all below it once more."""
        inside = f"{folder}/" if folder else ""
        for known in [each for each in self._tree if f"{each}/".startswith(inside)]:
            del self._tree[known]
        self._add(inside, self._storage.list_details(f"{self._root}/{folder}".rstrip("/")))

    def known_place(self, path: str) -> str | None:
        """Return None: a store has no links."""
        del path
        return None

    def exists(self, path: str) -> bool:
        """Return whether an object or directory was seen; elsewhere, ask the store."""
        if not self._is_inside(path):
            return self._storage.exists(path)
        folder, name = posixpath.split(self._below(path))
        return not {name, f"{name}/"}.isdisjoint(self._tree.get(folder, {}))

    def list_names(self, folder: str) -> list[str]:
        """List the names that were seen in a directory; see `exists`."""
        if not self._is_inside(folder):
            return self._storage.list_names(folder)
        return sorted({seen.name for seen in self._tree.get(self._below(folder), {}).values()})

    def _is_inside(self, path: str) -> bool:
        return f"{path}/".startswith(f"{self._root}/")

    def _below(self, path: str) -> str:
        return path.removeprefix(self._root).strip("/")

    def _add(self, inside: str, found: Iterable[FileDetails]) -> None:
        for details in found:
            path = f"{inside}{details.path}"
            if path.endswith(_HADOOP):
                continue
            if not path or path.endswith("/"):
                self._refuse_folder(path, details.size)
                continue
            folder, name = posixpath.split(path)
            if "" in path.split("/"):
                problem = f"the key of '{path}' has a name without a character between two slashes"
                error = SourceUnreachable(source=self._root, problem=problem)
                self._refuse(path, error)
                continue
            seen = Seen(name, False, True, details.size, details.modified, details.tag)
            self._tree.setdefault(folder, {})[name] = seen
            self._add_folders(folder)

    def _refuse_folder(self, path: str, size: int) -> None:
        """Refuse an object that is named as a directory and has bytes, unless it is hidden."""
        if not _is_hidden(path):
            named = path or f"{self._root}/"
            self._refuse(named, ObjectNamedAsFolder(source=self._root, path=named, size=size))

    def _add_folders(self, folder: str) -> None:
        while folder:
            above, name = posixpath.split(folder)
            known = self._tree.setdefault(above, {})
            if f"{name}/" in known:
                return
            known[f"{name}/"] = Seen(name, is_directory=True, is_file=False)
            folder = above
