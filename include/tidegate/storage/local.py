"""A mounted file system: a few verbs that either happen whole or not at all.

Paths are text. Everything that changes a disk goes through the few system calls of `OsCalls`. What
is absent is empty; what is there and cannot be looked at is an error, never an empty answer: gc
would take what a directory that it cannot list needs for garbage.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import socket
import stat
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, BinaryIO, cast

from tidegate.errors import (
    FileExistsAlready,
    PartitionBusy,
    SourceFileGone,
)
from tidegate.storage.calls import DirectoryEntry, OsCalls
from tidegate.storage.copying import copy_bytes
from tidegate.storage.new_file import NewFile
from tidegate.storage.places import is_empty, real_path_of
from tidegate.storage.refusals import refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_HASH_CHUNK = 1 << 20
_SYNC_THREADS = 16


@functools.lru_cache(maxsize=1)
def _sync_threads(process: int) -> ThreadPoolExecutor:
    """Start threads once per process: a fork has none of those that its parent had."""
    return ThreadPoolExecutor(_SYNC_THREADS, thread_name_prefix=f"tidegate-sync-{process}")


@dataclass(frozen=True)
class LocalStorage:
    """A mounted file system.

    Failure: `write_once` leaves the old state or the new one; a crash between may leave a hidden
    temporary file, and doing the same again cleans it up. What `write_once` and `make_dirs` gave
    back stands after a power cut, too; what else was changed may not until it is synced.
    """

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

    def exists(self, path: str) -> bool:
        """Return whether a file, a directory or a link stands there.

        Raises:
            StorageDenied: it cannot be told.
        """
        return self._status(path, follow=False) is not None

    def length(self, path: str) -> int | None:
        """Return a file's size in bytes, None if there is none.

        Raises:
            StorageDenied: it cannot be told.
        """
        found = self._status(path)
        return found.st_size if found else None

    def modified(self, path: str) -> datetime | None:
        """Return when a file was last changed, None if there is none.

        Raises:
            StorageDenied: it cannot be told.
        """
        found = self._status(path)
        return datetime.fromtimestamp(found.st_mtime, UTC) if found else None

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

    def real_path(self, path: str) -> str:
        """Return the one name of a place that may have several: absolute, links resolved.

        Of a place that is not there yet, as far as there is something.

        Raises:
            StorageDenied: it cannot be told.
        """
        return real_path_of(path)

    def list_names(self, folder: str) -> list[str]:
        """List what stands directly in a directory, sorted; empty if there is no directory."""
        return sorted(entry.name for entry in self._scan(folder))

    def write_once(
        self, path: str, content: bytes | Iterable[bytes], scratch: str | None = None
    ) -> bool:
        """Write a file under a name that is given once: the first writer wins.

        Args:
            path: the name.
            content: all bytes of the file, or one block after the other.
            scratch: directory of the same file system where the file is written before it gets its
                name. By default its own directory, which must not be one that readers list: a
                process that dies leaves a hidden temporary file there.

        Returns:
            False if the name was taken; nothing was changed then.
        """
        folder = os.path.dirname(path)
        if self.exists(path):
            # Whoever wrote it may have died before the name was on the disk.
            self.sync(folder)
            return False
        self.make_dirs(folder)
        if scratch is not None:
            # It may go at a power cut, but not take along what others put beside it.
            self.make_dirs(os.path.dirname(scratch))
            self.make_dirs(scratch, synced=False)
        unique = f"{os.getpid()}-{os.urandom(4).hex()}"
        temporary = f"{scratch or folder}/.{os.path.basename(path)}.{unique}"
        try:
            with self.open_new(temporary) as file:
                for block in (content,) if isinstance(content, bytes) else content:
                    file.write(block)
            self.sync(temporary)
            self.calls.link(temporary, path)
            is_first = True
        except FileExistsError:
            is_first = False
        except OSError as refused:
            raise refusal(path, refused) from refused
        finally:
            # Also after a refusal: on a full disk half a file would keep the space it got.
            self.delete(temporary)
        self.sync(folder)
        return is_first

    def open_new(self, path: str) -> BinaryIO:
        """Open a new file for writing.

        Closing does not wait for the disk; see `sync_all`.
        """
        try:
            return cast("BinaryIO", NewFile(self.calls, path))
        except FileExistsError as taken:
            raise FileExistsAlready(path=path) from taken
        except OSError as refused:
            raise refusal(path, refused) from refused

    def copy_new(self, source: str, target: str) -> None:
        """Copy a file into a new one; never a second name, which a writer in place would reach.

        Does not wait for the disk; see `sync_all`. A crash leaves a part of it.

        Raises:
            SourceFileGone: there is no file to copy.
            FileExistsAlready: the name is taken.
            StorageFull: no space is left (Transient).
        """
        try:
            read_from = os.open(source, os.O_RDONLY)
        except FileNotFoundError as gone:
            raise SourceFileGone(path=source) from gone
        except OSError as refused:
            raise refusal(source, refused) from refused
        try:
            write_to = self.calls.create(target)
            try:
                copy_bytes(self.calls, read_from, write_to)
            finally:
                os.close(write_to)
        except FileExistsError as taken:
            raise FileExistsAlready(path=target) from taken
        except OSError as refused:
            raise refusal(target, refused) from refused
        finally:
            os.close(read_from)

    def link_new(self, source: str, target: str) -> None:
        """Give a file a second name without ever replacing what stands there.

        A move is this, then `sync` of the new directory, then `delete` of the old name: in another
        order a power cut may leave neither name. A crash leaves both; `settle` knows (PC-F25).
        """
        try:
            self.calls.link(source, target)
        except FileExistsError as taken:
            raise FileExistsAlready(path=target) from taken
        except OSError as refused:
            raise refusal(target, refused) from refused

    def delete(self, path: str) -> None:
        """Remove a file; nothing happens if there is none."""
        try:
            self.calls.unlink(path)
        except FileNotFoundError:
            return
        except OSError as refused:
            raise refusal(path, refused) from refused

    def delete_tree(self, path: str) -> None:
        """Remove a directory with all below it; nothing happens if there is none."""
        for entry in self._scan(path):
            if entry.is_directory:
                self.delete_tree(f"{path}/{entry.name}")
            else:
                self.delete(f"{path}/{entry.name}")
        try:
            self.calls.remove_dir(path)
        except FileNotFoundError:
            return
        except OSError as refused:
            raise refusal(path, refused) from refused

    def make_dirs(self, path: str, *, synced: bool = True) -> None:
        """Make a directory and those above it.

        Nothing goes into a directory whose name is not on the disk yet. So one with something in it
        needs nothing more, also when its maker died; an empty one may not have come so far. One
        that this process could not have made was made by somebody who looks after it.
        """
        parent = os.path.dirname(path) or os.curdir
        if os.path.isdir(path):
            if synced and is_empty(path) and os.access(parent, os.R_OK | os.W_OK):
                self.sync(parent)
            return
        if parent != path:
            self.make_dirs(parent, synced=synced)
        try:
            self.calls.make_dir(path)
        except FileExistsError:
            pass
        except OSError as refused:
            raise refusal(path, refused) from refused
        if synced:
            self.sync(parent)

    def sync(self, path: str) -> None:
        """Force a closed file's bytes, or a directory's names, to the disk."""
        try:
            descriptor = os.open(path, os.O_RDONLY)
            try:
                self.calls.sync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as refused:
            raise refusal(path, refused) from refused

    def sync_all(self, root: str, names: Iterable[str]) -> None:
        """Force closed files, and the directories from a root down to them, to the disk.

        Args:
            root: directory that the names are relative to; its own name stands already.
            names: of the files.

        Side by side, because a file system writes its journal once for all that wait for it: ten
        files take as long as two do one after the other.
        """
        paths = set()
        for name in names:
            path = name
            while path:
                paths.add(path)
                path = os.path.dirname(path)
        if paths:
            paths.add("")  # the root
        threads = _sync_threads(os.getpid())
        synced = [threads.submit(self.sync, f"{root}/{path}") for path in sorted(paths)]
        wait(synced)
        for each in synced:
            each.result()

    @contextlib.contextmanager
    def lock(self, path: str, holder: str) -> Iterator[None]:
        """Hold an exclusive lock; the operating system gives it back when the process dies.

        Raises:
            PartitionBusy: another process holds it; names what that process said of itself.
        """
        # Nobody holds a lock after a power cut.
        self.make_dirs(os.path.dirname(path), synced=False)
        try:
            descriptor = self.calls.open_lock(path)
        except OSError as refused:
            raise refusal(path, refused) from refused
        try:
            self._take_lock(path, descriptor, holder)
            yield
        finally:
            os.close(descriptor)

    def _take_lock(self, path: str, descriptor: int, holder: str) -> None:
        here = f"{holder} (process {os.getpid()} on {socket.gethostname()})"
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.calls.rewrite(descriptor, here.encode())
        except BlockingIOError as busy:
            found = os.pread(descriptor, 4096, 0).decode(errors="replace")
            raise PartitionBusy(partition=path, holder=found or "another process") from busy
        except OSError as refused:
            raise refusal(path, refused) from refused

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
            elif not (entry.is_link and self._is_directory(f"{folder}/{entry.name}")):
                yield f"{prefix}{entry.name}"

    def _is_directory(self, path: str) -> bool:
        found = self._status(path)
        return found is not None and stat.S_ISDIR(found.st_mode)
