"""Merge changes of one row in a hundred into a table: Tidegate and Iceberg's MERGE in Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.peers.environment import peer_launch, run_on_spark
from benchmarks.peers.layout import UPSERTED
from benchmarks.upserts import Peer, upserts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.peers.settings import Settings


def upserted(settings: Settings) -> Iterator[str]:
    """Run the comparison, and yield Markdown."""
    peer = Peer(UPSERTED, "Spark with Iceberg: MERGE", peer_launch(UPSERTED), _make_table)
    yield from upserts(settings.folder, settings.upserted_rows, settings.rounds, peer)


def _make_table(rows: Path, folder: Path) -> None:
    run_on_spark("make_upserted.py", str(folder), str(rows))
