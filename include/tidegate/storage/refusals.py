"""Turn errors of a file system into those of Tidegate: Transient, or to act on."""

from __future__ import annotations

import errno
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tidegate.errors import StorageDenied, StorageFull, StorageSilent, TidegateError

if TYPE_CHECKING:
    from collections.abc import Iterator

_PASSING = (errno.ESTALE, errno.ETIMEDOUT, errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOLCK)
"""Errors of a server or a busy machine that will pass."""


def silence_of(path: str, refused: BaseException) -> StorageSilent | None:
    """Return the error for a failure that will pass; None for any other."""
    if isinstance(refused, OSError) and refused.errno in _PASSING:
        return StorageSilent(path=path, problem=refused.strerror or str(refused))
    return None


@contextmanager
def temporary_files() -> Iterator[None]:
    """Turn errors of what is done with temporary files into those of the folder they lie in.

    Raises:
        StorageFull, StorageSilent: see `refusal` (Transient).
        StorageDenied: the folder cannot be used.
    """
    try:
        yield
    except OSError as refused:
        raise refusal(tempfile.gettempdir(), refused) from refused


def refusal(path: str, refused: OSError) -> TidegateError:
    """Return the error for any failure of a file system."""
    problem = refused.strerror or str(refused)
    if refused.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
        return StorageFull(path=path, problem=problem)
    return silence_of(path, refused) or StorageDenied(path=path, problem=problem)
