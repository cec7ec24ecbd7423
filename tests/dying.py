"""System calls of a process that dies before one that changes a name on the disk."""

from __future__ import annotations

import itertools
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from small_lake import SmallLake, stand_as_before
from tidegate.storage import LocalStorage, OsCalls

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


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


each_death = pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.slow)])
"""Of the steps at which a process may die, the usual suite tries some."""


def deaths(lake: SmallLake, copied: Path, every: int) -> Iterator[LocalStorage]:
    """Give a storage for each step at which a process may die, and the last one lets it live.

    Each time, target, work directory and ledger of the lake stand as they stood at first.

    Args:
        lake: a lake with a ledger.
        copied: where the lake is copied to.
        every: of the steps, every how manieth is tried.
    """
    shutil.copytree(lake.root, copied)
    for steps in itertools.count(0, every):
        for place in (lake.target, lake.work, lake.root / "ledger.db"):
            stand_as_before(place, copied / place.relative_to(lake.root))
        left = [steps]
        yield LocalStorage(calls=DyingCalls(left))
        if left[0] >= 0:
            return
