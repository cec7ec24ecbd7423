"""Say when and with which versions something was measured."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

_ENGINES = ("polars", "duckdb", "pyspark", "pyarrow")
_PEERS = ("pyspark", "pyiceberg", "duckdb", "polars", "pyarrow")
_PEERS_PINNED = Path(__file__).parent / "peers" / "requirements.in"


def measured_with() -> str:
    """Give one line about this environment."""
    engines = ", ".join(f"{name} {version(name)}" for name in _ENGINES)
    return (
        f"Measured on {datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, {engines}."
    )


def peers_measured_with(iceberg: str) -> str:
    """Give one line about this environment and the peers'.

    Args:
        iceberg: version of Iceberg's runtime for Spark.
    """
    pinned = dict(
        line.split("==") for line in _PEERS_PINNED.read_text().splitlines() if "==" in line
    )
    engines = {name.partition("[")[0]: number for name, number in pinned.items()}
    peers = ", ".join(f"{name} {engines[name]}" for name in _PEERS)
    return f"{measured_with()} Peers: {peers}, Iceberg {iceberg}."
