"""Copy the bytes of one open file into another, inside the kernel where the file systems can."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidegate.storage.calls import OsCalls

_STEP = 64 << 20
"""The bytes of one call, the most that a kill has to wait for."""
_CHUNK = 1 << 20
_CANNOT = (errno.EXDEV, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.EPERM, errno.EBADF)
"""The errors of kernels, sandboxes and file systems that cannot copy from one to the other."""


def copy_bytes(calls: OsCalls, source: int, target: int) -> None:
    """Copy from the positions of two descriptors to the end of the first.

    The kernel shares the blocks of both files if their file system can clone (XFS, Btrfs), and
    copies them on the server if it can (NFS).

    Raises:
        OSError: reading or writing failed.
    """
    try:
        while calls.copy_range(source, target, _STEP):
            pass
    except OSError as refused:
        if refused.errno not in _CANNOT:
            raise
    # Some file systems return 0 long before the end, and some begin although they cannot copy.
    while chunk := os.read(source, _CHUNK):
        view = memoryview(chunk)
        while view:
            view = view[calls.write(target, view) :]
