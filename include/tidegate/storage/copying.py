"""Copy the bytes of one open file into another, inside the kernel where the file systems can."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidegate.storage.calls import OsCalls

_STEP = 64 << 20
"""Bytes of one call; a kill waits for no more."""
_CHUNK = 1 << 20
_CANNOT = (errno.EXDEV, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.EPERM, errno.EBADF)
"""What kernels, sandboxes and file systems answer that cannot copy from one to the other."""


def copy_bytes(calls: OsCalls, source: int, target: int) -> None:
    """Copy from the positions of two descriptors to the end of the first.

    The kernel shares the blocks of both files where their file system clones (XFS, Btrfs), and
    copies them on the server where that can (NFS).

    Raises:
        OSError: as reading or writing refuses.
    """
    try:
        while calls.copy_range(source, target, _STEP):
            pass
    except OSError as refused:
        if refused.errno not in _CANNOT:
            raise
    # Some file systems say 0 long before the end, and one that cannot may begin nevertheless.
    while chunk := os.read(source, _CHUNK):
        view = memoryview(chunk)
        while view:
            view = view[calls.write(target, view) :]
