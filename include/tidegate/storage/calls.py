"""System calls on a disk, in one place, so that a test can stop the process around each."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import NamedTuple


class DirectoryEntry(NamedTuple):
    """A name in a directory."""

    name: str
    is_directory: bool
    """False for a link to a directory."""
    is_link: bool


@dataclass(frozen=True)
class OsCalls:
    """Each system call that changes a disk, and the two that read one."""

    def scan(self, path: str) -> list[DirectoryEntry]:
        """List one directory."""
        with os.scandir(path) as entries:
            return [
                DirectoryEntry(entry.name, entry.is_dir(follow_symlinks=False), entry.is_symlink())
                for entry in entries
            ]

    def status(self, path: str, *, follow: bool = True) -> os.stat_result:
        """Return the status of a path; of a link itself unless it is followed."""
        return os.stat(path, follow_symlinks=follow)

    def create(self, path: str) -> int:
        """Open a new file for writing; fails if the name is taken."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)

    def write(self, descriptor: int, content: memoryview | bytes) -> int:
        """Write some of the bytes, and return their number."""
        return os.write(descriptor, content)

    def copy_range(self, source: int, target: int, count: int) -> int:
        """Copy some of the bytes between two open files, and return their number; 0 at the end."""
        return os.copy_file_range(source, target, count)

    def sync(self, descriptor: int) -> None:
        """Force what was written to the disk."""
        os.fsync(descriptor)

    def link(self, source: str, target: str) -> None:
        """Give a file a second name; fails if it is taken."""
        os.link(source, target)

    def replace(self, source: str, target: str) -> None:
        """Give a file another name in one step, in place of the file that has it."""
        os.replace(source, target)

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
        """Replace the content of a lock file, which names its holder."""
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, content, 0)
