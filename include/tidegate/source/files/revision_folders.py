"""Find files of a table that Tidegate publishes with a directory for each revision.

A listing names a file as if it were in the directory of its partition, because the same file is in
the directory of every revision that has it: a window that was read before reads it from whichever
of them stands.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tidegate.model.revision_folder import REVISIONS, revision_folders

if TYPE_CHECKING:
    import pyarrow as pa

    from tidegate.storage import FileDetails, Storage


class ListedFiles:
    """Opens files that listings name, wherever they stand.

    It remembers which directories have revisions, and what these have: most files are opened by
    their own path, and the others without a look at their directories each.
    """

    def __init__(self, storage: Storage) -> None:
        """Prepare.

        Args:
            storage: of the files.
        """
        self.storage = storage
        self._places: dict[str, dict[str, str]] = {}
        """Directory of a partition → name of a file → its path in the newest revision with it."""

    def open(self, path: str) -> tuple[pa.NativeFile, FileDetails]:
        """Open a file; what is known of it has the path at which it stands.

        Raises:
            OSError: it cannot be read; a `FileNotFoundError` if it stands nowhere.
        """
        folder, _, name = path.rpartition("/")
        with contextlib.suppress(FileNotFoundError):
            return self.storage.open_with_details(self._places.get(folder, {}).get(name, path))
        self._places[folder] = self._found(folder)
        return self.storage.open_with_details(self._places[folder].get(name, path))

    def _found(self, folder: str) -> dict[str, str]:
        homes = revision_folders(self.storage, folder)
        if not homes:
            return {}
        place = f"{folder}/{REVISIONS}"
        # At once: each look at a directory of a store is a request.
        paths = [f"{place}/{name}" for name in self.storage.list_files(place)]
        order = {home: number for number, home in enumerate(reversed(homes))}
        standing = [path for path in paths if path.rpartition("/")[0] in order]
        standing.sort(key=lambda path: order[path.rpartition("/")[0]])
        return {path.rpartition("/")[2]: path for path in standing}
