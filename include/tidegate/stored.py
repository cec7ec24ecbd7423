"""Read files that Tidegate wrote, with a remedy if they are lost or damaged.

The remedy is provided by the owner of the file.
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
        storage: the storage of the file.
        path: of the file.
        remedy: returns the remedy if it is lost, as the error continues after "or".

    Raises:
        StateFileLost: there is no such file.
    """
    try:
        return storage.read_bytes(path)
    except SourceFileGone as gone:
        raise StateFileLost(path=path, remedy=remedy()) from gone


def as_stored(path: str, decode: Callable[[], _Said], remedy: Callable[[], str]) -> _Said:
    """Return the decoded content of a file.

    Args:
        path: of the file.
        decode: decodes the content.
        remedy: returns the remedy after the file is moved away; called only if needed, since a plan
            has as many calls as lines.

    Raises:
        StateFileDamaged: it cannot be decoded.
    """
    try:
        return decode()
    except (ValueError, TypeError, LookupError, AttributeError) as problem:
        found = f"what cannot be read: {problem}"
        raise StateFileDamaged(path=path, found=found, remedy=remedy()) from problem
