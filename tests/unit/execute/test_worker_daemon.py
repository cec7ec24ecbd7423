"""Workers take the installed pyspark, but never another one than Spark has put first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tidegate.execute.worker_daemon import without_copy

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder of packages with a pyspark in it, and its copy."""
    return install(tmp_path / "site-packages")


def install(folder: Path) -> Path:
    (folder / "pyspark" / "python" / "lib").mkdir(parents=True)
    (folder / "pyspark" / "__init__.py").touch()
    return folder


def copy_in(folder: Path) -> str:
    return str(folder / "pyspark" / "python" / "lib" / "pyspark.zip")


def test_copy_of_the_installed_package_is_left_out(installed: Path) -> None:
    path = ["/work", copy_in(installed), "/other.zip", str(installed)]

    assert without_copy(path) == ["/work", "/other.zip", str(installed)]


def test_copy_that_is_reached_by_a_link_is_left_out(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(installed)

    assert without_copy([copy_in(tmp_path / "link"), str(installed)]) == [str(installed)]


def test_copy_of_a_package_that_is_not_on_the_path_stays(installed: Path) -> None:
    path = [copy_in(installed), "/other"]

    assert without_copy(path) == path


def test_copy_stays_where_another_package_would_be_found(installed: Path, tmp_path: Path) -> None:
    other = install(tmp_path / "other")
    path = [copy_in(installed), str(other), str(installed)]

    assert without_copy(path) == path


def test_copy_of_a_spark_that_is_no_package_stays(installed: Path) -> None:
    path = ["/opt/spark/python/lib/pyspark.zip", str(installed)]

    assert without_copy(path) == path


def test_path_without_a_copy_stays(installed: Path) -> None:
    assert without_copy([str(installed)]) == [str(installed)]
