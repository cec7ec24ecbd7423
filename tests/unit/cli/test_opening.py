"""What a command imports: only what it needs, because that is most of what a short one costs."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

HEAVY = {"great_expectations", "numpy", "pandas", "polars", "pyarrow", "pyiceberg", "pyspark"}
LIBRARIES = {*HEAVY, "alembic", "sqlalchemy", "structlog"}

PIPELINE = """
name: orders
source: {{kind: files, path: {root}/landed}}
target: {{path: {root}/published, partition_by: {{dt: day(at)}}}}
event_time: at
"""


def imported(tmp_path: Path, *words: str) -> set[str]:
    """Type a command in a process of its own; return what it imported."""
    code = (
        "import atexit, sys\n"
        "atexit.register(lambda: print('imported', *sys.modules, file=sys.stderr))\n"
        f"sys.argv = ['tidegate', *{words!r}]\n"
        "from tidegate.cli.app import app\n"
        "app(prog_name='tidegate')\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    (line,) = [line for line in run.stderr.splitlines() if line.startswith("imported ")]
    return set(line.split())


@pytest.mark.parametrize("words", [("--help",), ("load", "--help"), ("--version",)])
def test_help_needs_no_library_of_ours(tmp_path: Path, words: tuple[str, ...]) -> None:
    found = imported(tmp_path, *words)

    assert found & LIBRARIES == set()
    assert "typer" in found


def test_status_of_a_ledger_that_is_there_reads_no_rows(tmp_path: Path) -> None:
    (tmp_path / "landed").mkdir()
    file = tmp_path / "orders.yaml"
    file.write_text(PIPELINE.format(root=tmp_path))

    made, looked = imported(tmp_path, "status", str(file)), imported(tmp_path, "status", str(file))
    at_all = imported(tmp_path, "status")

    assert "alembic" in made
    for found in (looked, at_all):
        assert found & (HEAVY | {"alembic", "structlog"}) == set()
        assert "sqlalchemy" in found
