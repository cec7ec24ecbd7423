"""System calls of a process that dies before one that changes a name on the disk."""

from __future__ import annotations

from dataclasses import dataclass, field

from tidegate.storage import OsCalls


class Killed(BaseException):
    """The process died."""


@dataclass(frozen=True)
class DyingCalls(OsCalls):
    """System calls of which only some are left."""

    left: list[int] = field(default_factory=list, hash=False)

    def _die(self) -> None:
        self.left[0] -= 1
        if self.left[0] < 0:
            raise Killed

    def link(self, source: str, target: str) -> None:
        self._die()
        super().link(source, target)

    def unlink(self, path: str) -> None:
        self._die()
        super().unlink(path)

    def remove_dir(self, path: str) -> None:
        self._die()
        super().remove_dir(path)
