"""A Hudi table of a walk of Spark's, as a source of races: its services take files away."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from race import steps
from race.steps import Step
from tidegate.model.partition import Partition
from tidegate.source.hudi.files import TableFiles
from walked_hudi import FOLDER, KEY, TIME, TOLD, WalkedHudi

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from race.doubles import Stage
    from race.table import Rows

_WRITE = re.compile(r".*/((?P<requested>\d{17})(?:_(?P<done>\d{17}))?)[.](delta|replace)?commit")
_OF_CHANGES = ("_change_type", FOLDER, KEY, TIME)


@dataclass(frozen=True)
class WalkedTable:
    """The table below one folder."""

    folder: Path
    walk: str
    skipped: int = 0
    """How many steps were done before the first one that is seen."""
    mode: str = "rebuild_partitions"

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of what is published that tell a row."""
        return (*TOLD, *(_OF_CHANGES if self._is_feed else ()))

    @property
    def keys(self) -> Mapping[str, Any]:
        """Keys of a pipeline file over it."""
        read = {"mode": self.mode, "columns": [*self.columns, "p"]}
        return {
            "source": {"kind": "hudi", "read": read},
            "target": {"partition_by": {"day": "p"}},
        }

    @property
    def place(self) -> Mapping[str, str]:
        """The keys of `source` that say where it stands."""
        return {"path": str(self._walked.place)}

    @property
    def commits(self) -> int:
        """How many steps are seen."""
        return len(self._walked.names) - self.skipped

    def make(self) -> None:
        """Write what stood after each step."""
        self._walked.unpack()

    def show(self, number: int, *, expired: bool = False) -> None:
        """Let the table stand as it did after a step."""
        del expired
        self._walked.stand_after(self.skipped + number)

    def instants(self) -> list[str]:
        """Give the ids of all writes, in the order in which they were done."""
        names = {name for files in self._walked.files for name in files}
        found = filter(None, map(_WRITE.fullmatch, names))
        ordered = {(it["done"] or it["requested"], it["requested"]): it[1] for it in found}
        return [ordered[key] for key in sorted(ordered)]

    def partition(self, number: int) -> Partition:
        """Give the partition of a day of January 2026."""
        return Partition((("day", f"2026-01-{number:02d}"),))

    def rows_after(self, number: int) -> Rows:
        """Count the engine's rows after a step."""
        rows = self._walked.rows_after(self.skipped + number, "p", *TOLD)
        return Counter((f"day={row[0]}", row[1:]) for row in rows)

    def standing(self, found: Rows) -> Rows:
        """Of a feed, of each key the latest change, and of one write's the row."""
        if not self._is_feed:
            return found
        changes = [(*row[len(TOLD) :], day, row[: len(TOLD)]) for day, row in found.elements()]
        changes.sort(key=lambda it: (it[3], it[0] == "UPSERT"))
        newest = {it[1:3]: it for it in changes}
        return Counter((it[4], it[5]) for it in newest.values() if it[0] == "UPSERT")

    @property
    def _is_feed(self) -> bool:
        return self.mode == "with_deletes"

    @property
    def _walked(self) -> WalkedHudi:
        return WalkedHudi(self.folder, self.walk)


def watch_files(stage: Stage) -> None:
    """Make each look at a file or folder of a Hudi table a step, in the process that calls it."""
    for name in ("open", "folder"):
        look = getattr(TableFiles, name)

        def stepping(files: TableFiles, below: str, *, _look: Any = look, _name: str = name) -> Any:
            stage.reach(Step(f"source {_name} {below}", reads={steps.SOURCE}))
            return _look(files, below)

        patch.object(TableFiles, name, stepping).start()
