"""A disk that, at a power cut, keeps what was forced to it and nothing that can be relied on else.

POSIX to the letter: the bytes of a file stand once the file was forced to the disk, a name once its
directory was, and neither brings the other along. Follows the system calls of `OsCalls` and looks
at the disk only where a life begins. Of the ledger's database it knows that a commit stands if the
database waits for the disk.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CUTS = ("lost", "gone", "doubled", "mixed")
"""What becomes of changes that were not forced to the disk.

A process that dies alone leaves all new names, and none that it took away. A power cut may leave
`lost`: no new name, and those that were taken away. `gone`: neither the one nor the other.
`doubled`: both. `mixed`: each as a seeded coin falls.
"""

_FULL = 2
"""`PRAGMA synchronous`: from here on a commit waits for the disk."""


@dataclass(eq=False)
class File:
    """A file that may have several names, or none."""

    kept: Path
    """A name outside the life, so that the bytes outlive the last name inside."""
    synced: int = 0
    """How many bytes stand; files only grow."""


@dataclass(eq=False)
class Folder:
    """A directory."""

    names: dict[str, File | Folder] = field(default_factory=dict)
    synced: dict[str, File | Folder] = field(default_factory=dict)
    replaced: set[str] = field(default_factory=set)
    """Names that went from one file to another in one step, since the last sync."""


@dataclass(frozen=True)
class Corner:
    """Decides for all changes alike what a power cut does to them."""

    makes: bool
    takes: bool
    fills: bool
    """A file has its length, and zeros for what was written."""

    def is_made(self) -> bool:
        """Whether a new name is there."""
        return self.makes

    def is_taken(self) -> bool:
        """Whether a name that was taken away is gone."""
        return self.takes

    def left_of(self, content: bytes) -> bytes:
        """What stands in the place of bytes that were written."""
        return bytes(len(content)) if self.fills else b""


class Coins:
    """Decides for each change by itself."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def is_made(self) -> bool:
        """Whether a new name is there."""
        return self._random.random() < 0.5

    def is_taken(self) -> bool:
        """Whether a name that was taken away is gone."""
        return self._random.random() < 0.5

    def left_of(self, content: bytes) -> bytes:
        """What stands in the place of bytes: all, or a part, perhaps with zeros behind it."""
        end = self._random.randint(0, len(content))
        zeros = bytes(len(content) - end)
        return self._random.choice((content, content[:end], content[:end] + zeros))


_CORNERS = {
    "lost": Corner(makes=False, takes=False, fills=False),
    "gone": Corner(makes=False, takes=True, fills=True),
    "doubled": Corner(makes=True, takes=False, fills=False),
}


def chance(cut: str, seed: int) -> Corner | Coins:
    """Give what decides at one kind of cut."""
    return _CORNERS.get(cut) or Coins(seed)


class Disk:
    """What would be left of a life's directory."""

    def __init__(self, root: Path, kept: Path, database: str = "ledger.db") -> None:
        """Take what stands below a root as forced to the disk.

        Args:
            root: of the life.
            kept: a new directory of the same file system for the bytes of files.
            database: name of the ledger below the root; its files are SQLite's.
        """
        kept.mkdir()
        self._root, self._kept, self._database = root, kept, database
        self._inodes: dict[int, File | Folder] = {}
        self._ledger_waits = True
        self._ledger_before = self._ledger()
        self._top = self._found(root)

    def note(self, call: str, arguments: tuple[Any, ...], given: Any) -> None:
        """Follow one system call that was made."""
        noted = getattr(self, f"_{call}", None)
        if noted is not None:
            noted(*arguments, given)

    def note_commit(self, connection: Any) -> None:
        """Follow the end of a transaction of the ledger."""
        ((waits,),) = connection.cursor().execute("PRAGMA synchronous").fetchall()
        self._ledger_waits = self._ledger_waits and waits >= _FULL

    def leave(self, to: Path, chance: Corner | Coins) -> None:
        """Write what a power cut now would leave.

        Args:
            to: a new directory.
            chance: decides on what was not forced to the disk.
        """
        _leave(self._top, to, chance)
        # One commit that did not wait may be gone, and then all that came after it.
        ledger = self._ledger() if self._ledger_waits else self._ledger_before
        for name, content in ledger.items():
            (to / name).write_bytes(content)

    def _ledger(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self._root.glob(f"{self._database}*")}

    def _found(self, path: Path) -> Folder:
        """Take a directory as it stands."""
        folder = Folder()
        for item in path.iterdir():
            if item.is_dir():
                folder.names[item.name] = self._found(item)
            elif not item.name.startswith(self._database):
                file = folder.names[item.name] = self._new_file(item)
                file.synced = item.stat().st_size
        folder.synced = dict(folder.names)
        self._inodes[path.stat().st_ino] = folder
        return folder

    def _new_file(self, path: Path) -> File:
        # The second name keeps the number of the inode from being given again, too.
        number = path.stat().st_ino
        known = self._inodes.get(number)
        if isinstance(known, File):
            # Another name of it: someone died while a file was moved.
            return known
        kept = self._kept / str(number)
        os.link(path, kept)
        file = self._inodes[number] = File(kept)
        return file

    def _folder_of(self, path: str) -> tuple[Folder, str]:
        *above, name = Path(path).relative_to(self._root).parts
        folder = self._top
        for part in above:
            found = folder.names[part]
            assert isinstance(found, Folder)
            folder = found
        return folder, name

    def _create(self, path: str, _descriptor: int) -> None:
        folder, name = self._folder_of(path)
        folder.names[name] = self._new_file(Path(path))

    def _open_lock(self, path: str, _descriptor: int) -> None:
        folder, name = self._folder_of(path)
        if name not in folder.names:
            folder.names[name] = self._new_file(Path(path))

    def _sync(self, descriptor: int, _nothing: None) -> None:
        status = os.fstat(descriptor)
        found = self._inodes.get(status.st_ino)  # nothing for the directory above the root
        if isinstance(found, File):
            found.synced = status.st_size
        elif found is not None:
            found.synced = dict(found.names)
            found.replaced.clear()

    def _link(self, source: str, target: str, _nothing: None) -> None:
        old, old_name = self._folder_of(source)
        new, new_name = self._folder_of(target)
        new.names[new_name] = old.names[old_name]

    def _replace(self, source: str, target: str, _nothing: None) -> None:
        folder, name = self._folder_of(target)
        self._link(source, target, None)
        self._unlink(source, None)
        folder.replaced.add(name)

    def _unlink(self, path: str, _nothing: None) -> None:
        folder, name = self._folder_of(path)
        folder.replaced.discard(name)
        del folder.names[name]

    _remove_dir = _unlink

    def _make_dir(self, path: str, _nothing: None) -> None:
        folder, name = self._folder_of(path)
        folder.names[name] = self._inodes[Path(path).stat().st_ino] = Folder()


def _leave(folder: Folder, to: Path, chance: Corner | Coins) -> None:
    to.mkdir()
    for name in sorted({*folder.synced, *folder.names}):
        before, now = folder.synced.get(name), folder.names.get(name)
        left = before
        if before is not now:
            # A name that was taken away and given again stands for the old file, the new or none.
            stays = name in folder.replaced or before is None or not chance.is_taken()
            left = before if stays else None
            if now is not None and chance.is_made():
                left = now
        if isinstance(left, Folder):
            _leave(left, to / name, chance)
        elif left is not None:
            content = left.kept.read_bytes()
            (to / name).write_bytes(content[: left.synced] + chance.left_of(content[left.synced :]))
