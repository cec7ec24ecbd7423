"""What the system tells of a place decides whether it could be made."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from tidegate.errors import PlaceUnwritable, StorageDenied
from tidegate.storage import writable
from tidegate.storage.writable import check_writable

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("below", ["", "a", "a/b/c"])
def test_place_that_is_there_or_could_be_made_is_accepted(tmp_path: Path, below: str) -> None:
    check_writable("target.path", f"{tmp_path}/{below}".rstrip("/"))

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["/proc", "/proc/x/y", "/sys/x"])
def test_place_of_the_kernel_is_refused(place: str) -> None:
    with pytest.raises(PlaceUnwritable, match=r"file system '(proc|sysfs)'"):
        check_writable("target.work", place)


def test_place_that_is_mounted_read_only_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = SimpleNamespace(f_flag=os.ST_RDONLY | os.ST_NOSUID)
    monkeypatch.setattr(os, "statvfs", lambda _: flags)

    with pytest.raises(PlaceUnwritable, match=rf"{tmp_path}: its file system is mounted read-only"):
        check_writable("target.path", f"{tmp_path}/a/b")


def test_place_without_the_right_to_write_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)

    with pytest.raises(StorageDenied, match=f"{tmp_path} is not writable"):
        check_writable("target.path", f"{tmp_path}/a")


def test_place_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(StorageDenied, match="Not a directory"):
        check_writable("target.path", f"{tmp_path}/file/a")


def test_system_without_a_list_of_mounts_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writable, "_MOUNTS", tmp_path / "none")

    check_writable("target.path", f"{tmp_path}/a")
