"""Tables that stand before a round: each round of an engine changes a copy of its own.

Copies are made before the rounds; a round only turns a link to its copy, because some tables name
their files by absolute paths. Standard library alone: the peers use it in their environment.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchmarks.job import Job

_MADE = "made"


class Standing:
    """One engine's table and its copies.

    Args:
        place: folder for all of them.
    """

    def __init__(self, place: Path) -> None:
        self._place = place
        self._out: Path | None = None

    @classmethod
    def of(cls, job: Job, engine: str) -> Standing:
        """Return the table of an engine."""
        return cls(Path(job.warehouse) / engine)

    @property
    def current(self) -> Path:
        """The folder under which the engine finds its table."""
        return self._place / "current"

    @property
    def is_made(self) -> bool:
        """Whether the table was made to its end."""
        return self._mark.exists()

    def begin(self) -> None:
        """Begin with an empty folder for the table that is copied."""
        shutil.rmtree(self._place, ignore_errors=True)
        (self._place / _MADE).mkdir(parents=True)
        self._turn(_MADE)

    def finish(self) -> None:
        """Remember that the table was made to its end."""
        self._mark.touch()

    def copy(self, rounds: int) -> None:
        """Make a copy for each round; data files are linked, because no engine changes one."""
        for number in range(rounds):
            copy = self._place / str(number)
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(self._place / _MADE, copy, copy_function=_link_or_copy)

    def take(self, out: Path) -> None:
        """Turn to the copy of a round, which has the name of the round's output folder."""
        out.mkdir(parents=True)
        self._out = out
        self._turn(out.name)

    def hand_over(self, files: Iterable[Path], key: str) -> None:
        """Show the files of the table after the last round as its output, for its fingerprint."""
        if self._out is None:
            return
        folder = self._out / "table" / f"{key}=all"
        folder.mkdir(parents=True)
        for number, file in enumerate(files):
            os.link(file.resolve(), folder / f"{number:05d}.parquet")

    def _turn(self, name: str) -> None:
        link = self._place / "turned"
        link.symlink_to(name)
        link.replace(self.current)

    @property
    def _mark(self) -> Path:
        return self._place / "finished"


def _link_or_copy(source: str, copy: str) -> None:
    if source.endswith(".parquet"):
        os.link(source, copy)
    else:
        shutil.copy2(source, copy)
