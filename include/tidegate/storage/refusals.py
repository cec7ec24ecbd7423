"""Which error a file system that refuses becomes: one that passes, or one to act on."""

from __future__ import annotations

import errno

from tidegate.errors import StorageDenied, StorageFull, StorageSilent, TidegateError

_PASSING = (errno.ESTALE, errno.ETIMEDOUT, errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOLCK)
"""What a server or a busy machine answers now and not for ever."""


def silence_of(path: str, refused: BaseException) -> StorageSilent | None:
    """Return the error for a refusal that passes by itself; None for any other."""
    if isinstance(refused, OSError) and refused.errno in _PASSING:
        return StorageSilent(path=path, problem=refused.strerror or str(refused))
    return None


def refusal(path: str, refused: OSError) -> TidegateError:
    """Return the error for whatever a file system refused."""
    problem = refused.strerror or str(refused)
    if refused.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
        return StorageFull(path=path, problem=problem)
    return silence_of(path, refused) or StorageDenied(path=path, problem=problem)
