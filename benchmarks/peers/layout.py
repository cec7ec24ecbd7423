"""Which tables there are and what their metadata says; standard library alone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

ORDER_COMMITS = 20
WINDOW_COMMITS = 5
"""The incremental read takes the last so many appends."""
EQUALITY_DELETES = 100_000
CHANGE_COMMITS = 20
CHANGED_SHARES = {1: 0.01, 50: 0.5}
"""Per cent in a table's name → share of its files that every commit changes."""
UPSERTED = "iceberg-merge"
"""The contestant that merges changes into a table."""
UPSERTED_TABLE = "bench.orders"
DENSE_ROWS = 13_000_000
ORDER_TABLES = {
    "plain": "without deletes",
    "positions": "5 % position deletes (v2)",
    "vectors": "5 % deletion vectors (v3)",
    "keys": f"{EQUALITY_DELETES:,} equality deletes (v2)",
}


@dataclass(frozen=True)
class TableFiles:
    """What a table's metadata file says."""

    metadata: Path
    snapshots: tuple[dict[str, Any], ...]
    """In order of their commits."""

    @classmethod
    def of(cls, warehouse: Path, name: str) -> TableFiles:
        """Read the newest metadata of a table in Hadoop's layout."""
        folder = warehouse / "bench" / name / "metadata"
        version = (folder / "version-hint.text").read_text().strip()
        path = folder / f"v{version}.metadata.json"
        snapshots = json.loads(path.read_text())["snapshots"]
        return cls(path, tuple(sorted(snapshots, key=lambda item: item["sequence-number"])))

    @property
    def totals(self) -> dict[str, str]:
        """The summary of the last commit."""
        return dict(self.snapshots[-1]["summary"])

    def before_window(self) -> int:
        """Give the snapshot after which the incremental read begins."""
        return int(self.snapshots[ORDER_COMMITS - WINDOW_COMMITS - 1]["snapshot-id"])


def is_made(warehouse: Path, name: str) -> bool:
    """Say whether a table was made to its end."""
    return _mark(warehouse, name).exists()


def mark_made(warehouse: Path, name: str) -> None:
    """Remember that a table was made to its end."""
    _mark(warehouse, name).touch()


def _mark(warehouse: Path, name: str) -> Path:
    return warehouse / f"{name}.made"
