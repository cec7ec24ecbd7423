"""A golden Hudi table that grows write by write, and a pipeline over it."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from typer.testing import CliRunner

from golden_hudi import NOW, answers, canonical, copied, texts
from small_lake import load, publish
from tidegate import read_committed
from tidegate.cli.app import app
from tidegate.pipeline import open_pipeline

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pytest

    from tidegate.model.run import Announced
    from tidegate.pipeline import Pipeline

_INSTANT = re.compile(r"(\d{17})[._].*")


@dataclass
class HudiLake:
    """A copy of a table; writes that are to come have no files on its timeline yet."""

    case: str
    root: Path
    mode: str = "snapshot"
    by: tuple[str, ...] = ("k",)
    """The columns that partition the target."""

    def __post_init__(self) -> None:
        self.root.mkdir(exist_ok=True)
        self.table = copied(self.case, self.root)
        layout = answers(self.case)["table"]["timeline_layout"]
        self.timeline = self.table / ".hoodie" / ("timeline" if layout == 2 else "")
        self._later = self.root / "later"
        self._later.mkdir()

    @property
    def writes(self) -> list[str]:
        """The requested times of the writes that the answers have rows of."""
        return [answer["as_of"] for answer in answers(self.case)["snapshots"]]

    def stand_after(self, requested: str) -> None:
        """Show the table as it was after a write, and before the next one was requested."""
        shown = {path.name: path for path in self.timeline.iterdir()}
        hidden = {path.name: path for path in self._later.iterdir()}
        for name, path in (shown | hidden).items():
            found = _INSTANT.fullmatch(name)
            if found is None:
                continue
            place = self.timeline if found[1] <= requested else self._later
            if path.parent != place:
                shutil.move(path, place / name)

    def file(self, **keys: Any) -> Path:
        """Write the pipeline file, with further keys."""
        source = {"kind": "hudi", "path": str(self.table), "read": {"mode": self.mode}}
        source |= keys.pop("source", {})
        raw = {
            "name": "trips",
            "source": source,
            "target": {"path": str(self.root / "published"), "partition_by": self._keys},
            "commit": {"trigger": "process-time"},
            **keys,
        }
        file = self.root / "trips.yaml"
        file.write_text(json.dumps(raw))
        return file

    def pipeline(self, **keys: Any) -> Pipeline:
        """Open the pipeline."""
        return open_pipeline(self.file(**keys), ledger=f"sqlite:///{self.root}/ledger.db")

    def take(self, **keys: Any) -> Announced:
        """Load what the table has now, and publish it."""
        pipeline = self.pipeline(**keys)
        announced = load(pipeline, now=NOW)
        publish(pipeline, now=NOW)
        return announced

    @property
    def published(self) -> Counter[str]:
        """The published rows as comparable texts."""
        return texts(canonical(self._rows()))

    @property
    def first(self) -> str:
        """The requested time of the first write that is still on the timeline."""
        return min(path.name for path in self.timeline.glob("2*commit"))[:17]

    def columns(self, *names: str) -> Counter[tuple[Any, ...]]:
        """Some columns of the published rows."""
        return Counter(tuple(row[name] for name in names) for row in self._rows())

    def _rows(self) -> list[dict[str, Any]]:
        table = read_committed(str(self.root / "published")).to_table()
        return [self._own(row) for row in table.to_pylist(maps_as_pydicts="strict")]

    def rows_after(self, requested: str) -> Counter[str]:
        """The engine's rows after a write."""
        found = next(it for it in answers(self.case)["snapshots"] if it["as_of"] == requested)
        return texts(found["rows"])

    @property
    def _keys(self) -> dict[str, str]:
        return {f"part_{column}": column for column in self.by}

    def _own(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """A row of the table: the columns of partition keys stand in the path alone."""
        return {self._keys.get(name, name): value for name, value in row.items()}


class Command(Protocol):
    """Types a command; gives what it wrote. No code: it may end in any way."""

    def __call__(self, line: str, code: int | None = 0) -> str: ...


def typed(root: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Let commands find the pipeline of a lake."""
    monkeypatch.setenv("TIDEGATE_PIPELINES", str(root))
    monkeypatch.setenv("TIDEGATE_LEDGER", f"sqlite:///{root}/ledger.db")

    def run(line: str, code: int | None = 0) -> str:
        program, *arguments = shlex.split(line.replace("PIPELINE", "trips"))
        assert program == "tidegate"
        result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert code is None or result.exit_code == code, result.output
        return " ".join(result.output.split())

    return run


def commands(text: object) -> list[str]:
    """The commands that a message names."""
    return re.findall(r"`(tidegate [^`]*)`", str(text))
