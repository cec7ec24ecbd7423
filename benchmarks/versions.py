"""Say when and with which versions something was measured."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_ENGINES = ("polars", "duckdb", "pyspark", "pyarrow")


def measured_with() -> str:
    """Give one line about this environment."""
    engines = ", ".join(f"{name} {version(name)}" for name in _ENGINES)
    return (
        f"Measured on {datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, {engines}."
    )


def peers_measured_with(folder: Path, jar: str) -> str:
    """Give one line about this environment and that of peers.

    Args:
        folder: with the peers' requirements.
        jar: name and version of what is beside their Spark.
    """
    lines = (folder / "requirements.in").read_text().splitlines()
    pinned = (line.split("==") for line in lines if "==" in line and "-ext-" not in line)
    peers = ", ".join(f"{name.partition('[')[0]} {number}" for name, number in pinned)
    return f"{measured_with()} Peers: {peers}, {jar}."
