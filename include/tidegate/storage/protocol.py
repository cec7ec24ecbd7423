"""The protocol of a store."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    import pyarrow as pa

    from tidegate.model.upload import Upload
    from tidegate.storage.details import FileDetails


class Unfinished(NamedTuple):
    """An upload that was begun and is no file yet."""

    path: str
    id: str
    begun: datetime


@runtime_checkable
class Deferred(Protocol):
    """A file that is being written, and is there once somebody completes its upload."""

    upload: Upload | None
    """Known once the file is closed."""

    def give_up(self) -> None:
        """Let there be no file, if it is not closed."""
        ...


class Uploads(Protocol):
    """Files that one process sends, and that are there once another one completes them (PC-F36)."""

    def begin(self, path: str) -> BinaryIO:
        """Begin a file, which is `Deferred`."""
        ...

    def standing(self, uploads: Iterable[Upload]) -> list[bool]:
        """Return of each upload whether it can still be completed as it was sent."""
        ...

    def made(self, upload: Upload) -> bool:
        """Return whether the file of this name is the one that was sent."""
        ...

    def complete_all(self, uploads: Iterable[Upload]) -> None:
        """Make the files.

        Raises:
            FileExistsAlready: another writer made one of this name.
        """
        ...


class Storage(Hashable, Protocol):
    """File systems and stores, as Tidegate uses them; equal storages have the same files."""

    def read_bytes(self, path: str) -> bytes:
        """Read a whole small file."""
        ...

    def open_input(self, path: str) -> pa.NativeFile:
        """Open a file for reading any part of it.

        Raises:
            OSError: it cannot be read; a `FileNotFoundError` if there is none.
        """
        ...

    def open_with_details(self, path: str) -> tuple[pa.NativeFile, FileDetails]:
        """Open a file, and return what is known of the very file that was opened.

        Raises:
            OSError: as `open_input`.
        """
        ...

    def exists(self, path: str) -> bool:
        """Return whether there is a file, a directory or a link."""
        ...

    def length(self, path: str) -> int | None:
        """Return a file's size in bytes, None if there is none."""
        ...

    def lengths(self, paths: Iterable[str]) -> Mapping[str, int | None]:
        """Return the sizes of several files; see `length`."""
        ...

    def modified(self, path: str) -> datetime | None:
        """Return when a file was last changed, None if there is none."""
        ...

    def version(self, path: str) -> Hashable | None:
        """Return a value that another file of this name would not have, None if there is none.

        Nor would the same file after a change: what was decoded of it holds as long as this does.
        """
        ...

    def sha256(self, path: str) -> str:
        """Hash a file's content."""
        ...

    def list_files(self, root: str) -> list[str]:
        """List every file below a directory, relative to it, sorted."""
        ...

    def details(self, path: str) -> FileDetails | None:
        """Return what is known of a file, None if there is none; opens nothing."""
        ...

    def list_details(self, root: str) -> list[FileDetails]:
        """List every file as `list_files` does, with what is known of it.

        A store is asked once per 1,000 objects, and for none of them alone. An object with bytes
        whose name ends with a slash is listed here alone: it is none of the files.
        """
        ...

    def real_path(self, path: str) -> str:
        """Return the one name of a place that may have several."""
        ...

    def list_names(self, folder: str) -> list[str]:
        """List the entries of a directory, sorted; empty if there is no directory."""
        ...

    def write_once(
        self, path: str, content: bytes | Iterable[bytes], scratch: str | None = None
    ) -> bool:
        """Write a file unless its name is taken; return False if it is.

        It is first written to `scratch`, for a directory that readers list.
        """
        ...

    def check_writable(self, key: str, path: str) -> None:
        """Check that a directory exists or could be made; nothing is written.

        Args:
            key: of the pipeline file that has the path.
            path: the directory.
        """
        ...

    def open_new(self, path: str) -> BinaryIO:
        """Open a new file for writing; `sync` forces it to the disk once it is closed."""
        ...

    def copy_new(self, source: str, target: str) -> None:
        """Copy a file to a new one, which is independent of later changes."""
        ...

    def link_new(self, source: str, target: str) -> None:
        """Give a file a second name, which must be free."""
        ...

    def link_all(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Give several files a second name each; see `link_new`.

        Who asks has found that the names are free, and holds a lock that keeps them so.
        """
        ...

    def replace(self, source: str, target: str) -> None:
        """Put a file in the place of another one; the name always has one of them."""
        ...

    def delete(self, path: str) -> None:
        """Remove a file, if there is one."""
        ...

    def delete_all(self, paths: Iterable[str]) -> None:
        """Remove several files; see `delete`."""
        ...

    def delete_tree(self, path: str) -> None:
        """Remove a directory and everything below it, if there is one."""
        ...

    def uploads(self, path: str) -> Uploads | None:
        """Return how files are made that others complete; None where a store has no such files.

        Args:
            path: of one of them, or of a directory above.
        """
        ...

    def unfinished(self, root: str) -> list[Unfinished]:
        """List the uploads below a root that were begun and did not become a file."""
        ...

    def give_up(self, path: str, upload: str) -> None:
        """Give up an upload that was begun of a file; see `unfinished`."""
        ...

    def make_dirs(self, path: str, *, synced: bool = True) -> None:
        """Make a directory and those above it; they survive a power cut.

        With `synced=False`, only after `sync_all` has forced them to the disk.
        """
        ...

    def sync(self, path: str) -> None:
        """Force a closed file's bytes, or a directory's names, to the disk."""
        ...

    def sync_all(self, root: str, names: Iterable[str]) -> None:
        """Force closed files below a root, and every directory from there to them, to the disk."""
        ...

    def lock(self, path: str, holder: str) -> contextlib.AbstractContextManager[None]:
        """Hold an exclusive lock while the context lasts."""
        ...
