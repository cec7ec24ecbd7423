"""A small Iceberg table that grows commit by commit, all of which are written once for all runs.

A run sees the commit that the table's version hint names; landing the next one, or expiring old
ones, writes the hint. What rows a commit brought is kept here, apart from anything Tidegate does.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

from tidegate.model.partition import Partition

if TYPE_CHECKING:
    from collections.abc import Mapping

BAD_AMOUNT = 5_000
DAY_1 = datetime(2026, 2, 1, tzinfo=UTC)
_SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("amount", pa.int64())])

# Rows per day of each commit. The third and the fourth bring a row to day 2 that a rule holds.
COMMITS: tuple[dict[int, int], ...] = (
    {1: 2, 2: 2},
    {1: 2, 2: 1},
    {1: 1, 2: 2},
    {1: 2, 2: 1},
    {1: 1, 3: 2},
    {2: 1, 3: 1},
)
_WITH_BAD_ROW = {3, 4}

PIPELINE: dict[str, Any] = {
    "source": {"kind": "iceberg", "on_expired_cursor": "from_oldest"},
    "event_time": "at",
    "rows": [{"name": "sane", "where": "amount < 1000", "on_failure": "hold"}],
    "target": {"partition_by": {"dt": "day(at)"}},
}

MERGED: dict[str, Any] = {
    **PIPELINE,
    "target": {**PIPELINE["target"], "write": "upsert", "keys": ["id"], "keys_stay": True},
}
"""The same with rows that are merged by key: each id comes once, so that the rows are the same."""
JOINED: dict[str, Any] = {
    **PIPELINE,
    "target": {**PIPELINE["target"], "compaction": {"small_file": "1MiB", "every": 2}},
}
"""The same with small files that are joined by every second revision."""

APART: dict[str, Any] = {**PIPELINE, "target": {**PIPELINE["target"], "layout": "revisions"}}
"""The same with a directory for each revision."""
MERGED_APART: dict[str, Any] = {**MERGED, "target": {**MERGED["target"], "layout": "revisions"}}

Rows = Counter[tuple[str, Any]]
"""Partition path and id, or what else tells a row, → how often."""


class RacedTable(Protocol):
    """A table that grows while others read it, and what a pipeline file says about it."""

    commits: int
    """How often it grows."""
    keys: Mapping[str, Any]
    """Keys of a pipeline file over it: also of `source`, but not where it stands."""
    columns: tuple[str, ...]
    """Columns of what is published that tell a row."""

    @property
    def place(self) -> Mapping[str, str]:
        """The keys of `source` that say where it stands."""
        ...

    def make(self) -> None:
        """Write all that it will be."""
        ...

    def show(self, number: int, *, expired: bool = False) -> None:
        """Let it stand as it did after a commit."""
        ...

    def instants(self) -> list[str]:
        """Give the ids of what checkpoints name, oldest first."""
        ...

    def partition(self, number: int) -> Partition:
        """Give a partition of the target."""
        ...

    def rows_after(self, number: int) -> Rows:
        """Count its rows as it stands after a commit."""
        ...

    def standing(self, found: Rows) -> Rows:
        """Count the rows that those add up to which were published."""
        ...


@dataclass(frozen=True)
class SourceTable:
    """The table below one folder."""

    folder: Path
    commits: int = len(COMMITS)
    keys: Mapping[str, Any] = field(default_factory=lambda: PIPELINE)
    columns: tuple[str, ...] = ("id",)

    @property
    def path(self) -> Path:
        """The table's directory, as pipeline files name it."""
        return self.folder / "table"

    @property
    def place(self) -> Mapping[str, str]:
        """The keys of `source` that say where it stands."""
        return {"metadata": str(self.path)}

    @property
    def _hint(self) -> Path:
        return self.path / "metadata" / "version-hint.text"

    def make(self) -> None:
        """Write all commits, and the metadata of the table as it stands after each of them."""
        self._hint.parent.mkdir(parents=True)
        uri, warehouse = f"sqlite:///{self.folder}/catalog.db", f"file://{self.folder}/raw"
        catalog = SqlCatalog("lake", uri=uri, warehouse=warehouse)
        catalog.create_namespace("raw")
        table = catalog.create_table("raw.orders", _SCHEMA)
        for number in range(1, len(COMMITS) + 1):
            table.append(_rows(number))
            text = Path(table.metadata_location.removeprefix("file://")).read_text()
            self._metadata(number).write_text(text)
            self._metadata(number, expired=True).write_text(_without_history(text))
        catalog.engine.dispose()

    def show(self, number: int, *, expired: bool = False) -> None:
        """Let the table stand as it did after a commit, perhaps without the oldest snapshots."""
        self._hint.write_text(self._metadata(number, expired=expired).name)

    def instants(self) -> list[str]:
        """Give the ids of the snapshots, oldest first."""
        snapshots = json.loads(self._metadata(len(COMMITS)).read_bytes())["snapshots"]
        found = sorted(snapshots, key=lambda item: item["sequence-number"])
        return [str(item["snapshot-id"]) for item in found]

    def partition(self, number: int) -> Partition:
        """Give the partition of a day of February 2026."""
        return Partition((("dt", f"2026-02-{number:02d}"),))

    def rows_after(self, number: int) -> Rows:
        """Count the rows of the table as it stands after a commit."""
        return rows_after(number)

    def standing(self, found: Rows) -> Rows:
        """Give them as they are."""
        return found

    def _metadata(self, number: int, *, expired: bool = False) -> Path:
        kind = "x" if expired else "v"
        return self._hint.parent / f"{kind}{number}.metadata.json"


def rows_after(number: int) -> Rows:
    """Count the rows of the table as it stands after a commit."""
    found: Rows = Counter()
    for each in range(1, number + 1):
        found.update((path, id) for path, id, _, _ in _listed(each))
    return found


def _listed(number: int) -> list[tuple[str, int, datetime, int]]:
    """Name partition, id, time and amount of each row of a commit."""
    listed = []
    for day, count in COMMITS[number - 1].items():
        for row in range(count):
            at = DAY_1 + timedelta(days=day - 1, minutes=10 * number + row)
            bad = number in _WITH_BAD_ROW and day == 2 and row == 0
            amount = BAD_AMOUNT if bad else row
            listed.append((f"dt=2026-02-{day:02d}", 100 * number + 10 * day + row, at, amount))
    return listed


def _rows(number: int) -> pa.Table:
    _, ids, times, amounts = zip(*_listed(number), strict=True)
    return pa.table({"id": ids, "at": times, "amount": amounts}, _SCHEMA)


def _without_history(text: str) -> str:
    """Forget the snapshots of the first two commits, as expiring does."""
    metadata = json.loads(text)
    snapshots = sorted(metadata["snapshots"], key=lambda item: item["sequence-number"])
    kept = snapshots[2:] or snapshots[-1:]
    ids = {item["snapshot-id"] for item in kept}
    metadata["snapshots"] = kept
    log = [item for item in metadata["snapshot-log"] if item["snapshot-id"] in ids]
    metadata["snapshot-log"] = log
    return json.dumps(metadata)
