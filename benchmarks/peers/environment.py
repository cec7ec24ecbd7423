"""Start processes in the peers' environment, with the Iceberg jar beside it."""

from __future__ import annotations

from pathlib import Path

from benchmarks.foreign_spark import ForeignSpark
from benchmarks.measure import Launch
from benchmarks.peers.layout import UPSERTED

ICEBERG = "1.11.0"
HERE = Path(__file__).parent
_PEERS = ForeignSpark(
    HERE,
    f"org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:{ICEBERG}",
    "d6ea6c5d099288daeb7d5a92061bd3d7d8f296492632b42378e5f2f0e3066242",
)
ON_SPARK = ("iceberg-spark", UPSERTED)


def peer_launch(name: str) -> Launch:
    """Give the command that starts a peer."""
    script = str(HERE / "contestants.py")
    if name in ON_SPARK:
        return Launch((*_PEERS.submit(), script), _PEERS.environment())
    python, environment = peer_python()
    return Launch((python, script), environment)


def peer_python() -> tuple[str, dict[str, str]]:
    """Give the peers' interpreter and its variables."""
    return _PEERS.python(), _PEERS.environment()


def run_on_spark(script: str, *arguments: str) -> None:
    """Run one of the peers' scripts, which makes tables, to its end."""
    _PEERS.run(script, *arguments)
