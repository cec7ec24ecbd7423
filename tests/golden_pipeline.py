"""A pipeline over a golden Iceberg table that can be seen as it stood at any of its versions."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from golden_iceberg import golden
from small_lake import load, publish, stamps
from tidegate import read_committed
from tidegate.pipeline import open_pipeline

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tidegate.model.run import Announced
    from tidegate.pipeline import Pipeline

NOW = datetime(2026, 12, 24, tzinfo=UTC)


@dataclass
class GoldenPipeline:
    """A table without a time column, published by its ids as soon as rows are there."""

    case: str
    root: Path
    source: dict[str, Any] = field(default_factory=dict)
    """Keys of `source` that every version is read with."""

    def at(self, version: int, **keys: Any) -> Pipeline:
        """Open the pipeline while the table has metadata `v<version>`, with keys of `source`."""
        self.root.mkdir(exist_ok=True)
        metadata = golden(self.case).folder / f"table/metadata/v{version}.metadata.json"
        said = {**golden(self.case).config(), **self.source, "metadata": str(metadata), **keys}
        raw = {
            "name": "golden",
            "source": said,
            "target": {"path": str(self.root / "published"), "partition_by": {"part": "id"}},
            "commit": {"trigger": "process-time"},
        }
        self.file.write_text(json.dumps(raw))
        return open_pipeline(self.file, ledger=self.ledger)

    @property
    def file(self) -> Path:
        """The pipeline file as it was written last."""
        return self.root / "golden.yaml"

    @property
    def ledger(self) -> str:
        """The ledger's address."""
        return f"sqlite:///{self.root}/ledger.db"

    def take(self, version: int, **keys: Any) -> Announced:
        """Load and publish what a version of the table brings."""
        pipeline = self.at(version, **keys)
        announced = load(pipeline, now=NOW)
        publish(pipeline, now=NOW)
        return announced

    def published(self, *columns: str) -> Counter[tuple[Any, ...]]:
        """Count the published rows."""
        found = read_committed(self.root / "published").to_table()
        rows = (found.column(name).to_pylist() for name in columns or ("part", "v"))
        return Counter(zip(*rows, strict=True)) if found.num_rows else Counter()

    def standing(self) -> Mapping[str, Any]:
        """Give what no refused load may change: ledger, work directory and target.

        Why it was refused is noted in the work directory.
        """
        opened = open_pipeline(self.file, ledger=self.ledger).ledger
        state = opened.pipeline.find()
        work = stamps(self.root / ".tidegate-published")
        return {
            # A window that a refused load took stays open; the next load goes on with it.
            "pipeline": state and replace(state, next_sequence=0, next_number=0),
            "windows": opened.windows.all(),
            "partitions": opened.partitions.all(),
            "files": stamps(self.root / "published"),
            "work": {name: it for name, it in work.items() if name != "load-failed.json"},
        }


def rows(*ids: int) -> Counter[tuple[Any, ...]]:
    """Give the rows (id, `v<id>`) that the tables with a history of their own hold."""
    return Counter((str(number), f"v{number}") for number in ids)
