"""A lake that many tests of a module begin with, made once and put back for each of them.

Names are in the bytes, so that it stands at the same place each time.
"""

from __future__ import annotations

import copy
import shutil
from typing import TYPE_CHECKING, Generic, TypeVar

from small_lake import SmallLake

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_Made = TypeVar("_Made")


class KeptLake(Generic[_Made]):
    """A lake as something left it."""

    def __init__(self, folder: Path, make: Callable[[SmallLake], _Made]) -> None:
        """Make it below a directory of its own."""
        self._lake = SmallLake(folder / "lake")
        self._kept = folder / "kept"
        self.made = make(self._lake)
        """What making it gave."""
        self._lake.catalog.engine.dispose()
        shutil.copytree(self._lake.root, self._kept, symlinks=True)

    def again(self) -> SmallLake:
        """Put it back to where it was."""
        lake = copy.copy(self._lake)
        shutil.rmtree(lake.root)
        shutil.copytree(self._kept, lake.root, symlinks=True)
        # Its connections are to the file that was there before.
        lake.catalog.engine.dispose()
        lake.table = lake.catalog.load_table("raw.orders")
        return lake
