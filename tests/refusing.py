"""A storage that cannot look at one place, and a process without the rights of root."""

from __future__ import annotations

import errno
import os
import resource
import traceback
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.storage import DirectoryEntry, OsCalls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NOBODY = 65534


@dataclass(frozen=True)
class BlindCalls(OsCalls):
    """System calls that cannot look at one place, as NFS answers when a server maps users away."""

    place: str = ""
    number: int = errno.EACCES

    def scan(self, path: str) -> list[DirectoryEntry]:
        """List any directory but that one."""
        self._refuse(path)
        return super().scan(path)

    def status(self, path: str, *, follow: bool = True) -> os.stat_result:
        """Tell what stands anywhere else."""
        self._refuse(path)
        return super().status(path, follow=follow)

    def _refuse(self, path: str) -> None:
        if path == self.place:
            raise OSError(self.number, os.strerror(self.number), path)


@contextmanager
def without_descriptors() -> Iterator[None]:
    """Let this process open no file more, as on a busy machine (EMFILE)."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def as_nobody(work: Callable[[], object]) -> None:
    """Do something in a forked process without the rights of root."""
    child = os.fork()
    if child == 0:
        try:
            if os.getuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            work()
            os._exit(0)
        except BaseException:  # noqa: BLE001 (a forked child must not run on into pytest)
            traceback.print_exc()
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
