"""The locks beside a home's PostgreSQL, which the system releases when their process ends."""

from __future__ import annotations

import contextlib
import fcntl
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def starting(folder: Path) -> Path:
    """Return the lock of whoever makes or starts the server."""
    return folder / "start.lock"


def using(folder: Path) -> Path:
    """Return the lock that users share, and that whoever stops the server has alone."""
    return folder / "use.lock"


def take(lock: Path, how: int = fcntl.LOCK_EX) -> IO[bytes]:
    """Return an open file with a lock on it; closing it releases the lock."""
    opened = lock.open("ab")
    try:
        fcntl.flock(opened, how)
    except BaseException:
        opened.close()
        raise
    return opened


@contextlib.contextmanager
def held(lock: Path) -> Iterator[None]:
    """Hold a lock alone for the duration of the context."""
    with take(lock):
        yield


def is_alone(opened: IO[bytes]) -> bool:
    """Turn a shared lock into one that nobody else has; return False if somebody else shares it."""
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
