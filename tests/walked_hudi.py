"""A Hudi table that goes through the steps of a walk of Spark's, and the engine's rows after each.

The walks `walk-served-*` have services that clean, compact, cluster and archive: files of the table
and of its timeline vanish between one step and the next.
"""

from __future__ import annotations

import functools
import io
import json
import os
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from golden_hudi import NOW, ROOT
from small_lake import load, publish
from tidegate import read_committed
from tidegate.pipeline import open_pipeline

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tidegate.pipeline import Pipeline
    from tidegate.storage import Storage

TOLD = ("id", "ts", "v")
"""Columns that tell a row, besides the partition `p`."""
KEY, FOLDER, TIME = "_hoodie_record_key", "_hoodie_partition_path", "_hoodie_commit_time"
KIND = "_change_type"


@dataclass(frozen=True)
class WalkedHudi:
    """The table below one folder; steps count from 1."""

    folder: Path
    walk: str = "walk-served-9"

    @property
    def place(self) -> Path:
        """The table's folder: a link to what stood after a step."""
        return self.folder / "table"

    @property
    def names(self) -> Sequence[str]:
        """What each step did."""
        return [step["step"] for step in told(self.walk)]

    @property
    def files(self) -> Sequence[Mapping[str, str]]:
        """The files after each step: path below the table → name of the content."""
        return [step["files"] for step in told(self.walk)]

    def unpack(self) -> None:
        """Write what stood after each step; files that are the same share their bytes."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with _packed(self.walk) as packed:
            packed.extractall(self.folder, (it for it in packed.namelist() if "blobs/" in it))
        for number, files in enumerate(self.files, 1):
            for below, name in files.items():
                path = self._after(number) / below
                path.parent.mkdir(parents=True, exist_ok=True)
                os.link(self.folder / "blobs" / name, path)

    def stand_after(self, number: int) -> None:
        """Let the table stand as it did after a step."""
        link = self.folder / "next"
        link.symlink_to(self._after(number))
        link.rename(self.place)

    def rows_after(self, number: int, *columns: str) -> Sequence[tuple[Any, ...]]:
        """The engine's rows after a step."""
        rows = _table(self.walk, number).select(columns).to_pylist()
        return [tuple(row[name] for name in columns) for row in rows]

    def _after(self, number: int) -> Path:
        return self.folder / "after" / str(number)


def _packed(walk: str) -> zipfile.ZipFile:
    return zipfile.ZipFile(ROOT / walk / "walk.zip")


@functools.cache
def told(walk: str) -> Sequence[Mapping[str, Any]]:
    """What the walk tells of its steps."""
    with _packed(walk) as packed:
        steps: Sequence[Mapping[str, Any]] = json.loads(packed.read("steps.json"))["steps"]
    return steps


@functools.cache
def _table(walk: str, number: int) -> Any:
    with _packed(walk) as packed:
        return pq.read_table(io.BytesIO(packed.read(f"rows/{number - 1}.parquet")))


@dataclass
class WalkedLake:
    """A table that goes on, and the pipeline `trips` over it, whose work stands below one root."""

    folder: Path
    mode: str = "rebuild_partitions"
    walk: str = "walk-served-9"
    keys: Mapping[str, Any] = field(default_factory=dict)
    """Further keys of the pipeline file."""

    def __post_init__(self) -> None:
        self.table = WalkedHudi(self.folder / "source", self.walk)
        self.table.unpack()
        self.root.mkdir()
        told = [KIND, KEY, FOLDER, TIME] if self.mode == "with_deletes" else []
        raw = {
            "name": "trips",
            "source": {
                "kind": "hudi",
                "path": str(self.table.place),
                "read": {"mode": self.mode, "columns": [*TOLD, "p", *told]},
                "split": {"max_rows": 4, "target_size": "1 KiB", "open_cost": "1 B"},
            },
            "target": {"path": str(self.root / "published"), "partition_by": {"day": "p"}},
            "commit": {"trigger": "process-time"},
            **self.keys,
        }
        (self.root / "trips.yaml").write_text(json.dumps(raw))

    @property
    def root(self) -> Path:
        """Where the pipeline file, the ledger and the target are."""
        return self.folder / "root"

    def pipeline(self, storage: Storage | None = None) -> Pipeline:
        """Open the pipeline."""
        ledger = f"sqlite:///{self.root}/ledger.db"
        return open_pipeline(self.root / "trips.yaml", ledger=ledger, storage=storage)

    def take(self, step: int) -> None:
        """Publish the table as it is after a step."""
        self.table.stand_after(step)
        pipeline = self.pipeline()
        load(pipeline, now=NOW)
        publish(pipeline, now=NOW)

    @property
    def rows(self) -> Counter[tuple[Any, ...]]:
        """The published rows; of a feed of changes, what they add up to."""
        found = read_committed(str(self.root / "published")).to_table().to_pylist()
        if self.mode == "with_deletes":
            found = added_up(found)
        return Counter((row["day"], *(row[name] for name in TOLD)) for row in found)

    def rows_after(self, step: int) -> Counter[tuple[Any, ...]]:
        """The engine's rows after a step."""
        return Counter(self.table.rows_after(step, "p", *TOLD))


def added_up(changes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each key the latest change, of one write's the row."""
    changes.sort(key=lambda row: (row[TIME], row[KIND] == "UPSERT"))
    newest = {(row[FOLDER], row[KEY]): row for row in changes}
    return [row for row in newest.values() if row[KIND] == "UPSERT"]
