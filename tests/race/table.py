"""A small Iceberg table that grows commit by commit, all of which are written once for all runs.

A run sees the commit that the table's version hint names; landing the next one, or expiring old
ones, writes the hint. What rows a commit brought is kept here, apart from anything Tidegate does.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

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

Rows = Counter[tuple[str, int]]
"""Partition path and id → how often."""


@dataclass(frozen=True)
class SourceTable:
    """The table below one folder."""

    folder: Path

    @property
    def path(self) -> Path:
        """The table's directory, as pipeline files name it."""
        return self.folder / "table"

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
