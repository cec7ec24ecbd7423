"""Folders for rows that memory does not hold; those that dead processes left are removed."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Self

_HELD = ".held"
"""The file that a process locks as long as it needs the folder; a dead one holds no lock."""


class TemporaryFolder:
    """A folder below the one for temporary files, until it is closed.

    *Failure:* after a kill it stays until a process on the same host makes another one.

    Args:
        purpose: part of its name.
    """

    def __init__(self, purpose: str) -> None:
        remove_left_folders()
        self._folder = tempfile.TemporaryDirectory(prefix=f"tidegate-{purpose}-")
        self.path = Path(self._folder.name)
        new = self.path / f"{_HELD}.new"
        self._held = new.open("xb")
        fcntl.flock(self._held, fcntl.LOCK_EX)
        # Under its name it is locked from the first moment on.
        new.rename(self.path / _HELD)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Remove the folder."""
        self.close()

    def close(self) -> None:
        """Remove the folder and its files."""
        self._folder.cleanup()
        self._held.close()


def remove_left_folders() -> None:
    """Remove the folders of processes that died on this host."""
    for held in Path(tempfile.gettempdir()).glob(f"tidegate-*/{_HELD}"):
        try:
            lock = os.open(held, os.O_RDWR)
        except OSError:
            # It is of another user, or is being removed.
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(held.parent, ignore_errors=True)
        except BlockingIOError:
            pass
        finally:
            os.close(lock)
