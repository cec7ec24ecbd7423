"""Look at the files of a mounted file system, without changing any.

A missing directory is empty. A directory that exists but cannot be listed is an error, never an
empty answer: otherwise gc would take files that are in use for garbage.
"""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tidegate.errors import SourceFileGone
from tidegate.storage.calls import DirectoryEntry, OsCalls
from tidegate.storage.details import FileDetails
from tidegate.storage.places import real_path_of
from tidegate.storage.refusals import refusal

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping

    import pyarrow as pa

_HASH_CHUNK = 1 << 20


@dataclass(frozen=True)
class LocalFiles:
    """The files of a mounted file system, for reading."""

    calls: OsCalls = field(default_factory=OsCalls)

    def read_bytes(self, path: str) -> bytes:
        """Read a whole small file.

        Raises:
            SourceFileGone: there is none.
        """
        try:
            with open(path, "rb") as file:
                return file.read()
        except FileNotFoundError as gone:
            raise SourceFileGone(path=path) from gone
        except OSError as refused:
            raise refusal(path, refused) from refused

    def open_input(self, path: str) -> pa.NativeFile:
        """Open a file for reading any part of it.

        Raises:
            OSError: it cannot be read; a `FileNotFoundError` if there is none.
        """
        import pyarrow as pa

        # One with a descriptor, which decoding with a pushed filter needs.
        return pa.OSFile(path)

    def open_with_details(self, path: str) -> tuple[pa.NativeFile, FileDetails]:
        """Open a file, and return what is known of the very file that was opened.

        Raises:
            OSError: as `open_input`.
        """
        file = self.open_input(path)
        return file, _details(path, os.fstat(file.fileno()))

    def exists(self, path: str) -> bool:
        """Return whether there is a file, a directory or a link.

        Raises:
            StorageDenied: the file system does not say.
        """
        return self._status(path, follow=False) is not None

    def length(self, path: str) -> int | None:
        """Return a file's size in bytes, None if there is none.

        Raises:
            StorageDenied: the file system does not say.
        """
        found = self._status(path)
        return found.st_size if found else None

    def lengths(self, paths: Iterable[str]) -> Mapping[str, int | None]:
        """Return the sizes of several files; see `length`."""
        return {path: self.length(path) for path in paths}

    def modified(self, path: str) -> datetime | None:
        """Return when a file was last changed, None if there is none.

        Raises:
            StorageDenied: the file system does not say.
        """
        found = self._status(path)
        return datetime.fromtimestamp(found.st_mtime, UTC) if found else None

    def version(self, path: str) -> Hashable | None:
        """Return which file it is, its size and its times; None if there is none.

        A copy put in its place is another file, even if its size and its time of change were kept:
        nobody can set the time of the change of its status.

        Raises:
            StorageDenied: the file system does not say.
        """
        found = self._status(path)
        if found is None:
            return None
        file = (found.st_dev, found.st_ino, found.st_size)
        return (*file, found.st_mtime_ns, found.st_ctime_ns)

    def sha256(self, path: str) -> str:
        """Hash a file's content.

        Raises:
            SourceFileGone: there is none.
        """
        hasher = hashlib.sha256()
        try:
            with open(path, "rb") as file:
                while chunk := file.read(_HASH_CHUNK):
                    hasher.update(chunk)
        except FileNotFoundError as gone:
            raise SourceFileGone(path=path) from gone
        except OSError as refused:
            raise refusal(path, refused) from refused
        return hasher.hexdigest()

    def list_files(self, root: str) -> list[str]:
        """List every file below a directory, sorted, relative to it.

        Empty if there is no directory. Links to directories are not followed.

        Raises:
            StorageDenied: a directory cannot be listed.
        """
        return sorted(self._files_below(root, ""))

    def details(self, path: str) -> FileDetails | None:
        """Return what is known of a file, None if there is none.

        Raises:
            StorageDenied: the file system does not say.
        """
        found = self._status(path)
        return _details(path, found) if found else None

    def list_details(self, root: str) -> list[FileDetails]:
        """List every file as `list_files` does, without links that lead to nothing.

        Raises:
            StorageDenied: a directory cannot be listed.
        """
        names = self.list_files(root)
        found = ((name, self._status(f"{root}/{name}")) for name in names)
        return [_details(name, status) for name, status in found if status]

    def real_path(self, path: str) -> str:
        """Return the one name of a place that may have several: absolute, with links resolved.

        Of a place that does not exist yet, the existing part is resolved.

        Raises:
            StorageDenied: the file system does not say.
        """
        return real_path_of(path)

    def list_names(self, folder: str) -> list[str]:
        """List the entries of a directory, sorted; empty if there is no directory."""
        return sorted(entry.name for entry in self._scan(folder))

    def _status(self, path: str, *, follow: bool = True) -> os.stat_result | None:
        try:
            return self.calls.status(path, follow=follow)
        except FileNotFoundError:
            return None
        except OSError as refused:
            raise refusal(path, refused) from refused

    def _scan(self, path: str) -> list[DirectoryEntry]:
        try:
            return self.calls.scan(path)
        except FileNotFoundError:
            return []
        except OSError as refused:
            raise refusal(path, refused) from refused

    def _files_below(self, folder: str, prefix: str) -> Iterator[str]:
        for entry in self._scan(folder):
            if entry.is_directory:
                yield from self._files_below(f"{folder}/{entry.name}", f"{prefix}{entry.name}/")
            elif not (entry.is_link and self.is_directory(f"{folder}/{entry.name}")):
                yield f"{prefix}{entry.name}"

    def is_directory(self, path: str) -> bool:
        """Return whether there is a directory, or a link to one.

        Raises:
            StorageDenied: the file system does not say.
        """
        found = self._status(path)
        return found is not None and stat.S_ISDIR(found.st_mode)


def _details(path: str, found: os.stat_result) -> FileDetails:
    return FileDetails(path, found.st_size, found.st_mtime_ns)
