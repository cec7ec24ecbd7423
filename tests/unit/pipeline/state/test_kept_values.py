"""A file is read once while it stays the same, and again once another is in its place."""

from __future__ import annotations

import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from tidegate.errors import SourceFileGone
from tidegate.pipeline.state.kept_values import KeptValues
from tidegate.storage import LocalStorage, Scratch

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.storage import Storage


@dataclass
class Counted:
    """Counts what is read of a storage."""

    storage: Storage = field(default_factory=LocalStorage)
    limit: int = 10
    read: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.values = KeptValues(self.storage, self._read, len, self.limit)

    def _read(self, path: str) -> bytes:
        self.read.append(path.rpartition("/")[2])
        return self.storage.read_bytes(path)


@pytest.fixture
def counted() -> Counted:
    return Counted()


def test_file_that_stays_is_read_once(tmp_path: Path, counted: Counted) -> None:
    (tmp_path / "a").write_bytes(b"12345")

    assert [counted.values.get(f"{tmp_path}/a") for _ in range(3)] == [b"12345"] * 3
    assert counted.read == ["a"]


def test_copy_with_the_same_size_and_time_of_change_is_another_file(
    tmp_path: Path, counted: Counted
) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "backup").write_bytes(b"54321")
    times = (tmp_path / "a").stat()
    os.utime(tmp_path / "backup", ns=(times.st_atime_ns, times.st_mtime_ns))
    counted.values.get(f"{tmp_path}/a")

    (tmp_path / "a").unlink()
    shutil.copy2(tmp_path / "backup", tmp_path / "a")

    assert (tmp_path / "a").stat().st_mtime_ns == times.st_mtime_ns
    assert counted.values.get(f"{tmp_path}/a") == b"54321"


def test_file_that_is_gone_is_not_remembered(tmp_path: Path, counted: Counted) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    counted.values.get(f"{tmp_path}/a")
    (tmp_path / "a").unlink()

    with pytest.raises(SourceFileGone):
        counted.values.get(f"{tmp_path}/a")


def test_least_recently_used_goes_first(tmp_path: Path, counted: Counted) -> None:
    for name in "abc":
        (tmp_path / name).write_bytes(b"1234")

    for name in "abacab":
        counted.values.get(f"{tmp_path}/{name}")

    # c does not fit beside a and b; b was used before a.
    assert counted.read == [*"abcb"]


def test_value_above_the_limit_is_read_each_time_and_replaces_nothing(
    tmp_path: Path, counted: Counted
) -> None:
    (tmp_path / "small").write_bytes(b"1")
    (tmp_path / "large").write_bytes(b"1" * 11)

    for name in ("small", "large", "large", "small"):
        counted.values.get(f"{tmp_path}/{name}")

    assert counted.read == ["small", "large", "large"]


def test_file_that_is_replaced_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    read = []

    def reading(at: str) -> bytes:
        content = LocalStorage().read_bytes(at)
        read.append(content)
        if len(read) == 1:
            path.unlink()
            path.write_bytes(b"newer")
        return content

    values = KeptValues(LocalStorage(), reading, len, 10)

    assert [values.get(str(path)) for _ in range(3)] == [b"old", b"newer", b"newer"]


def test_two_looks_at_one_disk_keep_their_own_files_in_memory(tmp_path: Path) -> None:
    path = f"{tmp_path}/a"
    for content in (b"one", b"two"):
        looking = Counted(Scratch())
        looking.storage.write_once(path, content)
        assert [looking.values.get(path) for _ in range(2)] == [content] * 2
        assert looking.read == ["a"]


def test_threads_that_ask_at_once_read_a_file_once(tmp_path: Path) -> None:
    path = tmp_path / "message.json"
    path.write_bytes(b"12345")
    begun = threading.Event()

    class Slow(Counted):
        def _read(self, path: str) -> bytes:
            begun.set()
            time.sleep(0.2)
            return super()._read(path)

    slow = Slow()
    with ThreadPoolExecutor(4) as threads:
        first = threads.submit(slow.values.get, str(path))
        assert begun.wait(10)
        others = [threads.submit(slow.values.get, str(path)) for _ in range(3)]

    assert {found.result() for found in (first, *others)} == {b"12345"}
    assert slow.read == ["message.json"]
