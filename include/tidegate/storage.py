"""The only way to a file system: a few verbs that either happen whole or not at all.

Paths are text. Everything that changes a disk goes through `LocalStorage`, and there through the
few system calls of `OsCalls`, so that a test can stop the process before and after each of them.
What is absent is empty; what is there and cannot be looked at is an error, never an empty answer:
gc would take what a directory that it cannot list needs for garbage.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import socket
import stat
from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Protocol, cast

from tidegate.errors import (
    FileContentWrong,
    FileExistsAlready,
    FileLengthWrong,
    PartitionBusy,
    PathEscapes,
    SourceFileGone,
    StagedFileMissing,
    StorageDenied,
    StorageFull,
    StorageSilent,
    TidegateError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_HASH_CHUNK = 1 << 20
_SYNC_THREADS = 16
_PASSING = (errno.ESTALE, errno.ETIMEDOUT, errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOLCK)
"""What a server or a busy machine answers now and not for ever."""


class Entry(NamedTuple):
    """A name in a directory."""

    name: str
    is_directory: bool
    """A link to a directory is none."""
    is_link: bool


@dataclass(frozen=True)
class OsCalls:
    """Each system call that changes a disk, once, and the two that look at one."""

    def scan(self, path: str) -> list[Entry]:
        """List one directory."""
        with os.scandir(path) as entries:
            return [
                Entry(entry.name, entry.is_dir(follow_symlinks=False), entry.is_symlink())
                for entry in entries
            ]

    def status(self, path: str, *, follow: bool = True) -> os.stat_result:
        """Ask what stands there; of a link itself unless it is followed."""
        return os.stat(path, follow_symlinks=follow)

    def create(self, path: str) -> int:
        """Open a new file for writing; fails if the name is taken."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)

    def write(self, descriptor: int, content: memoryview | bytes) -> int:
        """Write some of the bytes; the number written."""
        return os.write(descriptor, content)

    def sync(self, descriptor: int) -> None:
        """Force what was written to the disk."""
        os.fsync(descriptor)

    def link(self, source: str, target: str) -> None:
        """Give a file a second name; fails if it is taken."""
        os.link(source, target)

    def unlink(self, path: str) -> None:
        """Remove one name."""
        os.unlink(path)

    def make_dir(self, path: str) -> None:
        """Make one directory."""
        os.mkdir(path)

    def remove_dir(self, path: str) -> None:
        """Remove one empty directory."""
        os.rmdir(path)

    def open_lock(self, path: str) -> int:
        """Open the file that a lock is taken on."""
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o644)

    def rewrite(self, descriptor: int, content: bytes) -> None:
        """Replace what a lock file says of its holder."""
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, content, 0)


class Storage(Hashable, Protocol):
    """What the product needs of a file system; equal storages reach the same files."""

    def read_bytes(self, path: str) -> bytes:
        """Read a whole small file."""
        ...

    def exists(self, path: str) -> bool:
        """Say whether something stands there."""
        ...

    def length(self, path: str) -> int | None:
        """Give a file's size in bytes, None if there is none."""
        ...

    def modified(self, path: str) -> datetime | None:
        """Give when a file was last changed, None if there is none."""
        ...

    def sha256(self, path: str) -> str:
        """Hash a file's content."""
        ...

    def list_files(self, root: str) -> list[str]:
        """List every file below a directory, relative to it, sorted."""
        ...

    def real_path(self, path: str) -> str:
        """Give the one name of a place that may have several."""
        ...

    def list_names(self, folder: str) -> list[str]:
        """List what stands directly in a directory, sorted; empty if there is no directory."""
        ...

    def write_once(
        self, path: str, content: bytes | Iterable[bytes], scratch: str | None = None
    ) -> bool:
        """Write a file whose name is given once; False if the name was taken.

        `scratch` is where it is written first, for a directory that readers list.
        """
        ...

    def open_new(self, path: str) -> BinaryIO:
        """Open a new file for writing; `sync` forces it to the disk once it is closed."""
        ...

    def link_new(self, source: str, target: str) -> None:
        """Give a file a second name, which must be free."""
        ...

    def delete(self, path: str) -> None:
        """Remove a file, if there is one."""
        ...

    def delete_tree(self, path: str) -> None:
        """Remove a directory with all below it, if there is one."""
        ...

    def make_dirs(self, path: str, *, synced: bool = True) -> None:
        """Make a directory and those above it; a power cut does not take them away again.

        With `synced=False` it may, until `sync_all` forces them to the disk.
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
            raise _refusal(path, refused) from refused

    def exists(self, path: str) -> bool:
        """Say whether a file, a directory or a link stands there.

        Raises:
            StorageDenied: it cannot be told.
        """
        return self._status(path, follow=False) is not None

    def length(self, path: str) -> int | None:
        """Give a file's size in bytes, None if there is none.

        Raises:
            StorageDenied: it cannot be told.
        """
        found = self._status(path)
        return found.st_size if found else None

    def modified(self, path: str) -> datetime | None:
        """Give when a file was last changed, None if there is none.

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
            raise _refusal(path, refused) from refused
        return hasher.hexdigest()

    def list_files(self, root: str) -> list[str]:
        """List every file below a directory, sorted, relative to it.

        Empty if there is no directory. Links to directories are not followed.

        Raises:
            StorageDenied: a directory cannot be listed.
        """
        return sorted(self._files_below(root, ""))

    def real_path(self, path: str) -> str:
        """Give the one name of a place that may have several: absolute, links resolved.

        Of a place that is not there yet, as far as there is something.

        Raises:
            StorageDenied: it cannot be told.
        """
        return _real_path(path)

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
            raise _refusal(path, refused) from refused
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
            return cast("BinaryIO", _NewFile(self.calls, path))
        except FileExistsError as taken:
            raise FileExistsAlready(path=path) from taken
        except OSError as refused:
            raise _refusal(path, refused) from refused

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
            raise _refusal(target, refused) from refused

    def delete(self, path: str) -> None:
        """Remove a file; nothing happens if there is none."""
        try:
            self.calls.unlink(path)
        except FileNotFoundError:
            return
        except OSError as refused:
            raise _refusal(path, refused) from refused

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
            raise _refusal(path, refused) from refused

    def make_dirs(self, path: str, *, synced: bool = True) -> None:
        """Make a directory and those above it.

        Nothing goes into a directory whose name is not on the disk yet. So one with something in it
        needs nothing more, also when its maker died; an empty one may not have come so far. One
        that this process could not have made was made by somebody who looks after it.
        """
        parent = os.path.dirname(path) or os.curdir
        if os.path.isdir(path):
            if synced and _is_empty(path) and os.access(parent, os.R_OK | os.W_OK):
                self.sync(parent)
            return
        if parent != path:
            self.make_dirs(parent, synced=synced)
        try:
            self.calls.make_dir(path)
        except FileExistsError:
            pass
        except OSError as refused:
            raise _refusal(path, refused) from refused
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
            raise _refusal(path, refused) from refused

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
        with ThreadPoolExecutor(_SYNC_THREADS) as pool:
            for _ in pool.map(self.sync, (f"{root}/{path}" for path in sorted(paths))):
                pass

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
            raise _refusal(path, refused) from refused
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
            raise _refusal(path, refused) from refused

    def _status(self, path: str, *, follow: bool = True) -> os.stat_result | None:
        try:
            return self.calls.status(path, follow=follow)
        except FileNotFoundError:
            return None
        except OSError as refused:
            raise _refusal(path, refused) from refused

    def _scan(self, path: str) -> list[Entry]:
        try:
            return self.calls.scan(path)
        except FileNotFoundError:
            return []
        except OSError as refused:
            raise _refusal(path, refused) from refused

    def _files_below(self, folder: str, prefix: str) -> Iterator[str]:
        for entry in self._scan(folder):
            if entry.is_directory:
                yield from self._files_below(f"{folder}/{entry.name}", f"{prefix}{entry.name}/")
            elif not (entry.is_link and self._is_directory(f"{folder}/{entry.name}")):
                yield f"{prefix}{entry.name}"

    def _is_directory(self, path: str) -> bool:
        found = self._status(path)
        return found is not None and stat.S_ISDIR(found.st_mode)


@dataclass(frozen=True)
class Scratch(LocalStorage):
    """Keeps what is written once to itself: for looking at what would happen."""

    written: dict[str, bytes] = field(default_factory=dict, compare=False)

    def read_bytes(self, path: str) -> bytes:
        """Read what was written here, else from the disk."""
        return self.written[path] if path in self.written else super().read_bytes(path)

    def exists(self, path: str) -> bool:
        """Say whether it was written here, or stands on the disk."""
        return path in self.written or super().exists(path)

    def list_files(self, root: str) -> list[str]:
        """List the files of the disk and those written here."""
        mine = {
            path.removeprefix(f"{root}/") for path in self.written if path.startswith(f"{root}/")
        }
        return sorted({*super().list_files(root), *mine})

    def list_names(self, folder: str) -> list[str]:
        """List what stands directly in a directory of the disk, or was written here."""
        mine = {
            path.removeprefix(f"{folder}/").partition("/")[0]
            for path in self.written
            if path.startswith(f"{folder}/")
        }
        return sorted({*super().list_names(folder), *mine})

    def write_once(
        self, path: str, content: bytes | Iterable[bytes], scratch: str | None = None
    ) -> bool:
        """Keep the content in memory."""
        del scratch
        if self.exists(path):
            return False
        self.written[path] = content if isinstance(content, bytes) else b"".join(content)
        return True


class _NewFile:
    """A file being written.

    Hidden from nobody, so its directory must not be one that readers list.
    """

    def __init__(self, calls: OsCalls, path: str) -> None:
        self._calls = calls
        self._path = path
        self._descriptor = calls.create(path)
        self._position = 0
        self.closed = False

    def write(self, content: bytes) -> int:
        view = memoryview(content).cast("B")
        size = len(view)
        try:
            while view:
                view = view[self._calls.write(self._descriptor, view) :]
        except OSError as refused:
            raise _refusal(self._path, refused) from refused
        self._position += size
        return size

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        """Nothing is kept back."""

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        try:
            os.close(self._descriptor)
        except OSError as refused:
            raise _refusal(self._path, refused) from refused

    def __enter__(self) -> _NewFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def settle(
    storage: Storage, staged: str, target: str, *, length: int, sha256: str, window: int
) -> bool:
    """Find out what a planned file still needs (PC-F20–F26); changes nothing.

    Returns:
        True if it has to be moved, False if it stands at its target.

    Raises:
        StagedFileMissing: it is at neither place (PC-F24).
        FileLengthWrong: one of the two is not as long as sealed (PC-F21, F23, F26).
        FileContentWrong: both stand and the target has other bytes (PC-F25).
    """
    here, there = storage.length(staged), storage.length(target)
    if here is None and there is None:
        raise StagedFileMissing(path=staged, target=target, window=window)
    for path, found in ((staged, here), (target, there)):
        if found is not None and found != length:
            raise FileLengthWrong(path=path, expected=length, found=found)
    if here is not None and there is not None:
        found_hash = storage.sha256(target)
        if found_hash != sha256:
            raise FileContentWrong(path=target, expected=sha256, found=found_hash)
    return there is None


def below(root: str, path: str) -> str:
    """Join a relative path to a root and make sure that it stays below it, links resolved (PC-P11).

    Raises:
        PathEscapes: it does not.
    """
    joined = f"{root}/{path}"
    real_root = _real_path(root)
    if not f"{_real_path(joined)}/".startswith(f"{real_root}/") or ".." in path.split("/"):
        raise PathEscapes(path=joined, root=root)
    return joined


def same_file_system(one: str, other: str) -> bool:
    """Say whether a rename works between two places.

    Of which the nearest existing parents count.
    """
    return _device(one) == _device(other)


def _device(path: str) -> int:
    while True:
        try:
            return os.stat(path).st_dev
        except FileNotFoundError:
            path = os.path.dirname(path)
        except OSError as refused:
            raise _refusal(path, refused) from refused


def _real_path(path: str) -> str:
    try:
        return os.path.realpath(path, strict=True)
    except FileNotFoundError:
        # What stands before the missing name could be read, and behind it is nothing.
        return os.path.realpath(path)
    except OSError as refused:
        raise _refusal(path, refused) from refused


def _is_empty(folder: str) -> bool:
    try:
        with os.scandir(folder) as items:
            return next(items, None) is None
    except OSError as refused:
        raise _refusal(folder, refused) from refused


def silence_of(path: str, refused: BaseException) -> StorageSilent | None:
    """Return the error for a refusal that passes by itself; None for any other."""
    if isinstance(refused, OSError) and refused.errno in _PASSING:
        return StorageSilent(path=path, problem=refused.strerror or str(refused))
    return None


def _refusal(path: str, refused: OSError) -> TidegateError:
    problem = refused.strerror or str(refused)
    if refused.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
        return StorageFull(path=path, problem=problem)
    return silence_of(path, refused) or StorageDenied(path=path, problem=problem)
