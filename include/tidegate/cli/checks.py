"""Check the requirements of this machine, each with its remedy."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tidegate.config import ledger_url
from tidegate.errors import TidegateError
from tidegate.ledger import open_engine
from tidegate.model.wire import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

OLDEST_JAVA = 17
SPARK_CONNECTION = "AIRFLOW_CONN_SPARK_DEFAULT"
_PYTHONS = ((3, 11), (3, 13))


@dataclass(frozen=True)
class Line(Value):
    """The result of one check."""

    subject: str
    outcome: str
    """`ok`, `problem`, or `note`, for a requirement that not every pipeline has."""
    found: str
    remedy: str = ""


def ok(subject: str, found: str) -> Line:
    """Return the result of a check that found no problem."""
    return Line(subject, "ok", found)


def machine_lines() -> Iterator[Line]:
    """Yield the checks that concern every pipeline."""
    yield python_line()
    yield java_line()
    yield spark_line()
    yield ledger_line()
    yield connection_line()


def python_line() -> Line:
    """Check the version of Python."""
    found = sys.version.split()[0]
    if _PYTHONS[0] <= sys.version_info[:2] <= _PYTHONS[1]:
        return ok("Python", found)
    return Line("Python", "problem", found, "Use Python 3.11, 3.12 or 3.13: `make setup PYTHON=…`.")


def java_line() -> Line:
    """Check the Java that Spark would start; without one, `engine: local` still works."""
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java")
    remedy = f"Install Java {OLDEST_JAVA} or later and set JAVA_HOME, or run `make setup`."
    if java is None or not Path(java).exists():
        return Line("Java", "note", "none, so `engine: spark` cannot run", remedy)
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(?:1\.)?(\d+)([^"]*)"', answer.stderr)
    if version is None or int(version.group(1)) < OLDEST_JAVA:
        return Line("Java", "problem", answer.stderr.partition("\n")[0] or "no version", remedy)
    return ok("Java", f"{version.group(1)}{version.group(2)} in {java}")


def spark_line() -> Line:
    """Check the versions of two packages that install the same files (AF-1.2)."""
    spark, client = _installed("pyspark"), _installed("pyspark-client")
    if spark is None:
        return Line("pyspark", "note", "none, so `engine: spark` cannot run", "`make setup`.")
    if client in (spark, None):
        return ok("pyspark", spark if client is None else f"{spark}, and its client")
    found = f"pyspark {spark} beside pyspark-client {client}, which overwrite each other"
    return Line("pyspark", "problem", found, "Install equal versions: `make clean setup`.")


def refusal(subject: str, refused: str) -> Line:
    """Split an error's message into the problem and the remedy, which is its last sentence."""
    found, _, remedy = refused.rpartition(". ")
    return Line(subject, "problem", found or remedy, remedy if found else "")


def ledger_line(url: str | None = None) -> Line:
    """Check that the ledger answers; this creates or migrates it.

    Args:
        url: its address; by default the one that every command uses.
    """
    try:
        engine = open_engine(url or ledger_url())
    except TidegateError as refused:
        return refusal("ledger", str(refused))
    engine.dispose()
    return ok("ledger", f"{engine.url.render_as_string(hide_password=True)}, migrated")


def connection_line() -> Line:
    """Check the Spark connection of Airflow's tasks, which has no useful default (AF-2.10)."""
    if SPARK_CONNECTION in os.environ:
        return ok("Airflow", f"{SPARK_CONNECTION} is set")
    remedy = (
        'Where Airflow submits to Spark: set it to \'{"conn_type": "spark", "host": '
        '"local[2]"}\', or create the connection `spark_default`.'
    )
    return Line("Airflow", "note", f"{SPARK_CONNECTION} is not set here", remedy)


def _installed(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
