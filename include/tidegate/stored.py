"""Read what Tidegate itself wrote, and say what helps where it is lost or damaged.

Which remedy fits knows whoever owns the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from tidegate.errors import SourceFileGone, StateFileDamaged, StateFileLost

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.storage import Storage

_Said = TypeVar("_Said")


def read_content(storage: Storage, path: str, remedy: Callable[[], str]) -> bytes:
    """Read a whole file.

    Args:
        storage: where it stands.
        path: of the file.
        remedy: writes what helps where it is lost, as the error goes on after "or".

    Raises:
        StateFileLost: there is no such file.
    """
    try:
        return storage.read_bytes(path)
    except SourceFileGone as gone:
        raise StateFileLost(path=path, remedy=remedy()) from gone


def as_stored(path: str, decode: Callable[[], _Said], remedy: Callable[[], str]) -> _Said:
    """Return what a file's content says.

    Args:
        path: of the file.
        decode: reads the content, which is in memory.
        remedy: writes what helps once the file is moved away; asked only then, since a plan has
            as many calls as lines.

    Raises:
        StateFileDamaged: it says nothing.
    """
    try:
        return decode()
    except (ValueError, TypeError, LookupError, AttributeError) as problem:
        found = f"what cannot be read: {problem}"
        raise StateFileDamaged(path=path, found=found, remedy=remedy()) from problem
