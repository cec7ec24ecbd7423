"""The marker is written once, whole; another one in its place is somebody else's (PC-A06)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tidegate.commit.policies.protocol import PolicyContext
from tidegate.commit.policies.success_file import SuccessFile
from tidegate.errors import FileExistsAlready
from tidegate.model.partition import Partition
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from pathlib import Path


def _context(folder: Path, marker: str = '{"revision": 1}') -> PolicyContext:
    return PolicyContext(
        pipeline="orders",
        table_root=str(folder),
        partition=Partition((("dt", "1"),)),
        partition_root=str(folder / "dt=1"),
        revision=1,
        key="k",
        files=(),
        rows=0,
        size_bytes=0,
        marker_name="_DONE",
        marker=marker,
        storage=LocalStorage(),
        columns=None,
        scratch=str(folder / "scratch"),
    )


def test_marker_has_the_planned_bytes_under_the_planned_name(tmp_path: Path) -> None:
    SuccessFile().commit(_context(tmp_path))
    SuccessFile().commit(_context(tmp_path))

    (file,) = (tmp_path / "dt=1").iterdir()
    assert (file.name, file.read_text()) == ("_DONE", '{"revision": 1}')


def test_marker_of_somebody_else_is_not_written_over(tmp_path: Path) -> None:
    SuccessFile().commit(_context(tmp_path, "theirs"))

    with pytest.raises(FileExistsAlready, match="_DONE"):
        SuccessFile().commit(_context(tmp_path))

    assert (tmp_path / "dt=1" / "_DONE").read_text() == "theirs"
