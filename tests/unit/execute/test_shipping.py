from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.execute import shipping
from tidegate.execute.shipping import incomplete_worker, package_archive, ship_package


class Context:
    """What is asked of a Spark context."""

    def __init__(self, master: str) -> None:
        self.master = master
        self.listFiles: list[str] = []

    def addPyFile(self, path: str) -> None:  # noqa: N802 (Spark's name)
        self.listFiles.append(f"spark://driver:1234/files/{Path(path).name}")


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "local-cluster[2,1,1024]"])
def test_package_is_sent_once_to_the_executors_of_a_cluster(master: str) -> None:
    context: Any = Context(master)

    ship_package(context)
    ship_package(context)

    assert [name.rpartition("/")[2] for name in context.listFiles] == [package_archive().name]


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2,4]"])
def test_package_is_not_sent_to_threads(master: str) -> None:
    context: Any = Context(master)

    ship_package(context)

    assert context.listFiles == []


def test_archive_is_imported_without_the_package(tmp_path: Path) -> None:
    script = "import tidegate.pipeline.load.staging as staging; print(staging.__file__)"
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}

    said = subprocess.run(
        [sys.executable, "-c", script],
        env={**environment, "PYTHONPATH": str(package_archive())},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    assert said.stdout.strip() == f"{package_archive()}/tidegate/pipeline/load/staging.py"


def test_archive_of_the_same_files_has_the_same_bytes_and_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    for number in (1, 2, 3):
        package = tmp_path / f"copy-{number}" / "tidegate"
        (package / "__pycache__").mkdir(parents=True)
        (package / "__init__.py").write_text("one" if number < 3 else "other")
        (package / "b.py").write_text("")
        (package / "__pycache__" / "b.pyc").write_bytes(os.urandom(8))
        os.utime(package / "b.py", (number * 10**8, number * 10**8))
        monkeypatch.setattr(shipping, "_PACKAGE", package)
        package_archive.cache_clear()
        archive = package_archive()
        with zipfile.ZipFile(archive) as opened:
            assert opened.namelist() == ["tidegate/__init__.py", "tidegate/b.py"]
        made.append((archive.name, archive.read_bytes()))
    package_archive.cache_clear()

    assert made[0] == made[1]
    assert made[0][0] != made[2][0]


def test_job_that_failed_for_another_reason_is_not_explained() -> None:
    assert incomplete_worker(RuntimeError("lost an executor")) is None


def test_package_inside_an_archive_is_left_to_whoever_put_it_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipping, "_PACKAGE", tmp_path / "sent.zip" / "tidegate")
    context: Any = SimpleNamespace(master="yarn")

    ship_package(context)
