"""Copies have all bytes, whatever the kernel can, and share nothing with what they are of."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tidegate.errors import StorageFull
from tidegate.storage import LocalStorage, OsCalls

if TYPE_CHECKING:
    from pathlib import Path

CONTENT = os.urandom(3 << 20) + b"end"


@dataclass(frozen=True)
class KernelWithout(OsCalls):
    """A kernel that refuses to copy between files, perhaps after it has begun."""

    number: int = errno.EXDEV
    begins: bool = False

    def copy_range(self, source: int, target: int, count: int) -> int:
        if self.begins and not os.lseek(source, 0, os.SEEK_CUR):
            return super().copy_range(source, target, 1000)
        if self.number:
            raise OSError(self.number, os.strerror(self.number))
        return 0


@dataclass(frozen=True)
class ShortCalls(OsCalls):
    """A kernel that copies less than it is asked for."""

    def copy_range(self, source: int, target: int, count: int) -> int:
        return super().copy_range(source, target, min(count, 1 << 20))


@pytest.mark.parametrize(
    "calls",
    [
        pytest.param(OsCalls(), id="in the kernel"),
        pytest.param(ShortCalls(), id="bit by bit"),
        pytest.param(KernelWithout(errno.EXDEV), id="another file system"),
        pytest.param(KernelWithout(errno.ENOSYS), id="an old kernel"),
        pytest.param(KernelWithout(errno.EPERM), id="a sandbox"),
        pytest.param(KernelWithout(errno.EOPNOTSUPP, begins=True), id="refused on the way"),
        pytest.param(KernelWithout(0, begins=True), id="an end that is none"),
    ],
)
def test_copy_has_all_bytes(calls: OsCalls, tmp_path: Path) -> None:
    source, target = tmp_path / "a", tmp_path / "b"
    source.write_bytes(CONTENT)

    LocalStorage(calls).copy_new(str(source), str(target))

    assert target.read_bytes() == CONTENT


def test_copy_written_over_in_its_place_leaves_what_it_is_of(tmp_path: Path) -> None:
    source, target = tmp_path / "a", tmp_path / "b"
    source.write_bytes(CONTENT)
    LocalStorage().copy_new(str(source), str(target))

    with target.open("r+b") as file:
        file.write(b"C")

    assert source.read_bytes() == CONTENT


def test_copy_of_an_empty_file_is_empty(tmp_path: Path) -> None:
    (tmp_path / "a").touch()

    LocalStorage().copy_new(str(tmp_path / "a"), str(tmp_path / "b"))

    assert (tmp_path / "b").read_bytes() == b""


def test_copy_to_a_full_disk_is_typed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(CONTENT)

    with pytest.raises(StorageFull, match="b"):
        LocalStorage(KernelWithout(errno.ENOSPC)).copy_new(str(tmp_path / "a"), str(tmp_path / "b"))
