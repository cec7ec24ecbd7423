"""A new file has all bytes that were written, however little a disk takes at once."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import StorageFull
from tidegate.storage import OsCalls
from tidegate.storage.new_file import NewFile

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class ShortCalls(OsCalls):
    """System calls that write few bytes at a time, as a disk may."""

    most: int

    def write(self, descriptor: int, content: memoryview | bytes) -> int:
        return super().write(descriptor, content[: self.most])


@dataclass(frozen=True)
class FullCalls(OsCalls):
    """System calls of a full disk."""

    def write(self, descriptor: int, content: memoryview | bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@given(parts=st.lists(st.binary(max_size=9), max_size=4), most=st.integers(1, 4))
def test_file_has_all_bytes_of_each_write(
    parts: list[bytes], most: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("new") / "part"

    with NewFile(ShortCalls(most), str(path)) as file:
        sizes = [file.write(part) for part in parts]
        assert file.tell() == sum(sizes)

    assert path.read_bytes() == b"".join(parts)
    assert sizes == [len(part) for part in parts]


def test_buffer_of_wider_items_is_written_by_bytes(tmp_path: Path) -> None:
    with NewFile(OsCalls(), str(tmp_path / "part")) as file:
        assert file.write(memoryview(pa.array([1, 2], pa.int64()).buffers()[1])[:16]) == 16

    assert (tmp_path / "part").stat().st_size == 16


def test_name_that_is_taken_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(b"mine")

    with pytest.raises(FileExistsError):
        NewFile(OsCalls(), str(tmp_path / "part"))

    assert (tmp_path / "part").read_bytes() == b"mine"


def test_full_disk_is_named_with_the_path(tmp_path: Path) -> None:
    with (
        NewFile(FullCalls(), str(tmp_path / "part")) as file,
        pytest.raises(StorageFull, match="part"),
    ):
        file.write(b"x")


def test_close_again_has_no_effect(tmp_path: Path) -> None:
    file = NewFile(OsCalls(), str(tmp_path / "part"))
    file.close()
    # The number may belong to another file by now.
    other = os.open(tmp_path / "other", os.O_WRONLY | os.O_CREAT)

    file.close()

    assert os.write(other, b"x") == 1
    os.close(other)
