"""Find out whether a path could be made, from what the system tells: nothing is written."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from tidegate.errors import PlaceUnwritable, StorageDenied
from tidegate.storage.refusals import refusal

_MOUNTS = Path("/proc/self/mountinfo")
_OF_THE_KERNEL = frozenset(
    {"bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "proc", "sysfs", "tracefs"}
)
"""File systems that have no files but their own, whatever the access bits of their directories."""


def check_writable(key: str, path: str) -> None:
    """Check that a directory exists or could be made, by its nearest existing parent.

    Args:
        key: where the pipeline file has the path.
        path: the directory.

    Raises:
        StorageDenied: this user may not write there.
        PlaceUnwritable: nobody can: the file system is read-only, or one of the kernel's own.
    """
    nearest, found = _nearest(path)
    problem = _never(nearest, found.st_dev)
    if problem is not None:
        raise PlaceUnwritable(key=key, path=path, nearest=nearest, problem=problem)
    if not os.access(nearest, os.W_OK):
        raise StorageDenied(path=path, problem=f"{nearest} is not writable")


def _nearest(path: str) -> tuple[str, os.stat_result]:
    while True:
        try:
            return path, os.stat(path)
        except FileNotFoundError:
            path = os.path.dirname(path) or "."
        except OSError as refused:
            raise refusal(path, refused) from refused


def _never(nearest: str, device: int) -> str | None:
    """Return why no user can write below a directory."""
    kind = _file_system(device)
    if kind in _OF_THE_KERNEL:
        return f"it is of the file system '{kind}', which the kernel fills"
    if os.statvfs(nearest).f_flag & os.ST_RDONLY:
        return "its file system is mounted read-only"
    return None


def _file_system(device: int) -> str | None:
    """Return the kind of a mounted device; None where the system has no such list."""
    number = f"{os.major(device)}:{os.minor(device)}"
    with suppress(OSError):
        for line in _MOUNTS.read_text(errors="replace").splitlines():
            mount, _, source = line.partition(" - ")
            if mount.split(" ")[2] == number:
                return source.split(" ")[0]
    return None
