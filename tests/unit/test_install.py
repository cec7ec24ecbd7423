"""What an install must be: one pyspark, no address of an index, no path of one machine."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
# Written so that this file does not find itself.
INDEX = re.compile(
    r"pypi[.]org/simple|files[.]pythonhosted|--(?:extra-)?index-url|UV_(?:DEFAULT_)?INDEX"
)
MACHINE = re.compile(r"(?<![\w.$}>-])/(?:root|home/(?!you\b)\w+|Users/\w+|work)/")
# Metadata of real tables names the place where they were written.
OTHERS = "tests/golden/"


def installed(package: str) -> str | None:
    """Give the version of a package, or None if it is absent."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def tracked_files() -> list[Path]:
    """List the text files under version control."""
    listed = subprocess.run(
        ["git", "grep", "-I", "--name-only", "-e", ""], cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.stdout.splitlines() if not name.startswith(OTHERS)]


def lines_with(pattern: re.Pattern[str]) -> list[str]:
    """Find the lines of tracked files that a pattern matches."""
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in tracked_files()
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), start=1)
        if pattern.search(line)
    ]


def test_pyspark_and_its_client_are_of_one_version() -> None:
    # Both own the same files; of two versions the one installed last wins (AF-1.2, AF-1.5).
    assert installed("pyspark-client") in (installed("pyspark"), None)


@pytest.mark.spark
def test_python_function_runs_in_a_spark_task(spark: SparkSession) -> None:
    def doubled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            yield pa.record_batch({"id": [2 * row for row in batch["id"].to_pylist()]})

    rows = spark.range(0, 4, 1, 2).mapInArrow(doubled, "id long").collect()

    assert sorted(row.id for row in rows) == [0, 2, 4, 6]


def test_tracked_files_name_no_package_index() -> None:
    assert lines_with(INDEX) == []


def test_tracked_files_name_no_path_of_one_machine() -> None:
    assert lines_with(MACHINE) == []
