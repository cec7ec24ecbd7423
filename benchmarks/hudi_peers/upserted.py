"""Upsert changes of one row in a hundred into a table: Tidegate and Hudi's own writer in Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.hudi_peers.environment import HERE, PEERS
from benchmarks.hudi_peers.layout import UPSERTED
from benchmarks.measure import Launch
from benchmarks.upserts import Peer, upserts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.hudi_peers.suites import Settings


def upserted(settings: Settings) -> Iterator[str]:
    """Run the comparison, and yield Markdown."""
    launch = Launch((*PEERS.submit(), str(HERE / "contestants.py")), PEERS.environment())
    peer = Peer(UPSERTED, "Spark with Hudi: upsert", launch, _make_table)
    yield from upserts(settings.folder, settings.upserted_rows, settings.rounds, peer)


def _make_table(rows: Path, folder: Path) -> None:
    PEERS.run("make_upserted.py", str(folder), str(rows))
