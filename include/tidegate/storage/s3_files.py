"""Look at the objects of a store as files in directories, without changing any.

A directory is what names have in common; there is none without an object in it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from tidegate.errors import SourceFileGone
from tidegate.storage.addresses import named, normal
from tidegate.storage.details import FileDetails, nanoseconds
from tidegate.storage.s3_calls import S3Calls
from tidegate.storage.s3_client import MISSING, client_errors, code_of, refusals_named
from tidegate.storage.s3_input import S3Input
from tidegate.storage.s3_threads import answers

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping
    from datetime import datetime

    import pyarrow as pa

_Found = TypeVar("_Found")

_HASH_CHUNK = 1 << 20
_ASKED_ONE_BY_ONE = 4
"""The most files of a directory that are not worth to list it: it may have many others."""


@dataclass(frozen=True)
class S3Files:
    """The objects of a store, for reading.

    Raises: `StoreSilent` (Transient), `CredentialsExpired` (Transient), `StoreDenied`,
    `CredentialsMissing`, `BucketMissing`: see `refusals_named`.
    """

    calls: S3Calls = field(default_factory=S3Calls)

    def read_bytes(self, path: str) -> bytes:
        """Read a whole small object.

        Raises:
            SourceFileGone: there is none.
        """
        content, _ = self._found(path, lambda: self.calls.content(path))
        return content

    def open_input(self, path: str) -> pa.NativeFile:
        """Open an object for reading ranges of it.

        Raises:
            FileNotFoundError: there is none.
        """
        import pyarrow as pa

        return pa.PythonFile(S3Input(self.calls, path), "r")

    def open_with_details(self, path: str) -> tuple[pa.NativeFile, FileDetails]:
        """Open an object; what is known of it comes with its first bytes.

        Raises:
            FileNotFoundError: there is none.
        """
        import pyarrow as pa

        opened = S3Input(self.calls, path)
        details = opened.details
        # Of an object without a byte, a store says nothing when it is asked for its last ones.
        if details is None:
            details = self.details(path) or FileDetails(path, 0, 0)
        return pa.PythonFile(opened, "r"), details

    def exists(self, path: str) -> bool:
        """Return whether there is an object, or one below a directory of this name."""
        key = named(path).key
        with refusals_named(path):
            first = self.calls.first(path)
            if first is None or first == key or first.startswith(f"{key}/"):
                return first is not None
            # Another name begins with this one, and comes before what is below it.
            return self.calls.first(f"{path}/") is not None

    def length(self, path: str) -> int | None:
        """Return an object's size in bytes, None if there is none."""
        found = self._head(path)
        return None if found is None else int(found["ContentLength"])

    def lengths(self, paths: Iterable[str]) -> Mapping[str, int | None]:
        """Return the sizes of several objects: of those of one directory by listing it."""
        found: dict[str, int | None] = {}
        folders: dict[str, list[str]] = {}
        for path in paths:
            folders.setdefault(path.rpartition("/")[0], []).append(path)
        for folder, names in folders.items():
            if len(names) <= _ASKED_ONE_BY_ONE:
                found.update(zip(names, answers(self.length, names), strict=True))
                continue
            there = {f"{folder}/{name}": size for name, size in self._sizes(folder)}
            found.update((name, there.get(name)) for name in names)
        return found

    def modified(self, path: str) -> datetime | None:
        """Return when an object was written, None if there is none."""
        found = self._head(path)
        return None if found is None else found["LastModified"]

    def version(self, path: str) -> Hashable | None:
        """Return tag, size and time of an object; None if there is none."""
        found = self._head(path)
        if found is None:
            return None
        return (found.get("ETag"), found["ContentLength"], found["LastModified"])

    def sha256(self, path: str) -> str:
        """Hash an object's content.

        Raises:
            SourceFileGone: there is none.
        """
        hasher = hashlib.sha256()
        found = self._found(path, lambda: self.calls.get(path))
        with refusals_named(path):
            while chunk := found["Body"].read(_HASH_CHUNK):
                hasher.update(chunk)
        return hasher.hexdigest()

    def list_files(self, root: str) -> list[str]:
        """List every object below an address, relative to it, sorted."""
        return [found.path for found in self.list_details(root) if not _is_folder(found.path)]

    def list_names(self, folder: str) -> list[str]:
        """List the names directly below an address, sorted."""
        with refusals_named(folder):
            names = {
                item[kind].rstrip("/").rpartition("/")[2]
                for page in self.calls.pages(folder, deep=False)
                for group, kind in (("Contents", "Key"), ("CommonPrefixes", "Prefix"))
                for item in page.get(group, [])
                if group == "CommonPrefixes" or not item[kind].endswith("/")
            }
        return sorted(names)

    def details(self, path: str) -> FileDetails | None:
        """Return size, time and tag of an object; None if there is none."""
        found = self._head(path)
        if found is None:
            return None
        return _details(path, found, found["ContentLength"])

    def list_details(self, root: str) -> list[FileDetails]:
        """List every object below an address, relative to it, sorted, with what a listing says.

        One that is named as a directory, with a slash at its end, is among them if it has bytes.
        """
        key = named(root).key
        skipped = len(key) + 1 if key else 0
        with refusals_named(root):
            found = [
                _details(item["Key"][skipped:], item, item["Size"])
                for page in self.calls.pages(root, deep=True)
                for item in page.get("Contents", [])
                # Consoles and other clients make objects for directories.
                if item["Size"] or not _is_folder(item["Key"][skipped:])
            ]
        return sorted(found)

    def real_path(self, path: str) -> str:
        """Return the address itself: a store has no links."""
        return normal(path)

    def _sizes(self, folder: str) -> list[tuple[str, int]]:
        with refusals_named(folder):
            return [
                (item["Key"].rpartition("/")[2], int(item["Size"]))
                for page in self.calls.pages(folder, deep=False)
                for item in page.get("Contents", [])
            ]

    def _head(self, path: str) -> dict[str, Any] | None:
        with refusals_named(path):
            try:
                return self.calls.head(path)
            except client_errors() as refused:
                if code_of(refused) in MISSING:
                    return None
                raise

    def _found(self, path: str, ask: Callable[[], _Found]) -> _Found:
        with refusals_named(path):
            try:
                return ask()
            except client_errors() as refused:
                if code_of(refused) in MISSING:
                    raise SourceFileGone(path=path) from refused
                raise


def _is_folder(name: str) -> bool:
    """Return whether an object has the name of a directory: of one below, or of the one listed."""
    return not name or name.endswith("/")


def _details(path: str, said: Mapping[str, Any], size: int) -> FileDetails:
    tag = str(said.get("ETag", "")).strip('"')
    return FileDetails(path, int(size), nanoseconds(said["LastModified"]), tag)
