"""A mounted file system: a few verbs that each happen as a whole or not at all.

Paths are text. Every change to a disk goes through the few system calls of `OsCalls`.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import socket
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, cast

from tidegate.errors import FileExistsAlready, PartitionBusy, SourceFileGone
from tidegate.storage.copying import copy_bytes
from tidegate.storage.local_files import LocalFiles
from tidegate.storage.new_file import NewFile
from tidegate.storage.places import is_empty
from tidegate.storage.refusals import refusal
from tidegate.storage.writable import check_writable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidegate.storage.protocol import Unfinished

_SYNC_THREADS = 16


@functools.lru_cache(maxsize=1)
def _sync_threads(process: int) -> ThreadPoolExecutor:
    """Start threads once per process: a fork has none of those that its parent had."""
    return ThreadPoolExecutor(_SYNC_THREADS, thread_name_prefix=f"tidegate-sync-{process}")


@dataclass(frozen=True)
class LocalStorage(LocalFiles):
    """A mounted file system.

    Failure: `write_once` leaves the old state or the new one; a crash in between may leave a hidden
    temporary file. Once `write_once` or `make_dirs` has returned, its change survives a power cut;
    other changes survive one only after they are synced.
    """

    def write_once(
        self, path: str, content: bytes | Iterable[bytes], scratch: str | None = None
    ) -> bool:
        """Write a file unless its name is taken: the first writer wins.

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
            # A power cut may remove it, but nothing that others put beside it.
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
            # Also after an error: on a full disk half a file would keep its space.
            self.delete(temporary)
        self.sync(folder)
        return is_first

    def check_writable(self, key: str, path: str) -> None:
        """See `writable.check_writable`."""
        check_writable(key, path)

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
        """Copy a file to a new one.

        The copy is never a link, so that changing the source in place does not change it. Does not
        wait for the disk; see `sync_all`. A crash may leave a part of it.

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
        """Give a file a second name, without ever replacing another file.

        A move consists of this, then `sync` of the new directory, then `delete` of the old name: in
        another order a power cut may leave neither name. A crash may leave both names, which
        `moves.has_to_move` tells apart (PC-F25).
        """
        try:
            self.calls.link(source, target)
        except FileExistsError as taken:
            raise FileExistsAlready(path=target) from taken
        except OSError as refused:
            raise refusal(target, refused) from refused

    def link_all(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Give several files a second name each; see `link_new`."""
        for source, target in pairs:
            self.link_new(source, target)

    def replace(self, source: str, target: str) -> None:
        """Put a file in the place of another one of the same directory.

        At every moment, and after a power cut, the name has the one or the other, if the new one
        was synced before. Which of them is certain once the directory was synced. Files that
        readers rely on are never replaced; see `link_new`.

        Raises:
            SourceFileGone: there is no new file; the old one stays.
        """
        try:
            self.calls.replace(source, target)
        except FileNotFoundError as gone:
            raise SourceFileGone(path=source) from gone
        except OSError as refused:
            raise refusal(source, refused) from refused

    def delete(self, path: str) -> None:
        """Remove a file; nothing happens if there is none."""
        try:
            self.calls.unlink(path)
        except FileNotFoundError:
            return
        except OSError as refused:
            raise refusal(path, refused) from refused

    def delete_all(self, paths: Iterable[str]) -> None:
        """Remove several files; see `delete`."""
        for path in paths:
            self.delete(path)

    def delete_tree(self, path: str) -> None:
        """Remove a directory and everything below it; nothing happens if there is none."""
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

    def uploads(self, path: str) -> None:
        """Return None: a file of a disk is there as soon as it is written."""
        del path

    def unfinished(self, root: str) -> list[Unfinished]:
        """Return nothing: what is begun on a disk is a file."""
        del root
        return []

    def give_up(self, path: str, upload: str) -> None:
        """Do nothing; see `unfinished`."""

    def make_dirs(self, path: str, *, synced: bool = True) -> None:
        """Make a directory and those above it.

        Nothing is put into a directory before its name is on the disk. A directory that is not
        empty is therefore durable, even if the process that made it died; an empty one may not be.
        A directory that this process has no right to make was made by somebody else, and is left to
        them.
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
            root: directory that the names are relative to; its own name is durable already.
            names: of the files.

        Files are synced in parallel, because a file system writes its journal once for all that
        wait for it: ten files take as long as two do one after the other.
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
        """Hold an exclusive lock; the operating system releases it when the process dies.

        Raises:
            PartitionBusy: another process holds it; the error names that process.
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
