"""Paths that lead out of their root are refused, and file systems are told apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.errors import (
    PathEscapes,
)
from tidegate.storage import below, same_file_system

MEMORY = Path("/dev/shm")


def test_below_inside_the_root_gives_the_joined_path(tmp_path: Path) -> None:
    assert below(str(tmp_path), "dt=1/hr=2") == f"{tmp_path}/dt=1/hr=2"
    assert below(str(tmp_path), "") == f"{tmp_path}/"


@pytest.mark.parametrize("path", ["..", "../other", "dt=1/../../other", "dt=1/../dt=2"])
def test_below_with_steps_upwards_is_refused(tmp_path: Path, path: str) -> None:
    """PC-P11."""
    with pytest.raises(PathEscapes):
        below(str(tmp_path / "root"), path)


def test_below_through_a_link_that_leads_out_is_refused(tmp_path: Path) -> None:
    """PC-P11: links are resolved before paths are compared."""
    (tmp_path / "root").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "root" / "dt=1").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(PathEscapes):
        below(str(tmp_path / "root"), "dt=1")


def test_below_with_a_root_that_is_a_link_is_inside(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "root").symlink_to(tmp_path / "real")

    assert below(str(tmp_path / "root"), "dt=1") == f"{tmp_path}/root/dt=1"


def test_same_file_system_of_places_not_there_yet_looks_at_their_parents(tmp_path: Path) -> None:
    assert same_file_system(str(tmp_path / "a" / "b"), str(tmp_path / "c"))


@pytest.mark.skipif(
    not MEMORY.is_dir() or MEMORY.stat().st_dev == Path("/tmp").stat().st_dev,
    reason="needs a second file system",
)
def test_same_file_system_of_memory_and_disk_is_false() -> None:
    assert not same_file_system("/dev/shm/tidegate-none", "/tmp/tidegate-none")
