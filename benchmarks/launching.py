"""How the engines of Tidegate's own environment are started."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from benchmarks.contestants import CORES
from benchmarks.measure import Launch

ON_SPARK = ("tidegate-spark", "tidegate-spark-together", "spark", "spark-together")
_PLAIN_JVM = ("spark", "spark-together")
"""Started without the JVM options of `make setup`, which make Spark's own work slower once warm."""
_HERE = Path(__file__).parent


def launch(name: str) -> Launch:
    """Give the command that starts a contestant."""
    script = str(_HERE / "contestants.py")
    environment = with_package(os.environ)
    if name not in ON_SPARK:
        return Launch((sys.executable, script), environment)
    if name in _PLAIN_JVM:
        environment.pop("SPARK_SUBMIT_OPTS", None)
    return Launch(("spark-submit", *submit_options(), script), environment)


def submit_options() -> tuple[str, ...]:
    """Give the options that every Spark of a comparison gets."""
    return ("--master", f"local[{CORES}]", "--driver-memory", "2g")


def with_package(environment: os._Environ[str] | dict[str, str]) -> dict[str, str]:
    """Add the benchmarks to what a process can import."""
    known = environment.get("PYTHONPATH", "")
    path = os.pathsep.join(filter(None, [str(_HERE.parent), known]))
    return {**environment, "PYTHONPATH": path}
