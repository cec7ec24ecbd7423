"""The storage verbs: whole or not at all, first writer wins, nothing outside the root."""

from __future__ import annotations

import errno
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tidegate.errors import (
    StorageDenied,
    StorageFull,
)
from tidegate.storage import LocalStorage, OsCalls


@dataclass(frozen=True)
class RefusingCalls(OsCalls):
    """System calls of a disk that is full, or of a place that is forbidden."""

    number: int = errno.ENOSPC

    def write(self, descriptor: int, content: memoryview | bytes) -> int:
        raise OSError(self.number, os.strerror(self.number))


@dataclass(frozen=True)
class ShortCalls(OsCalls):
    """System calls that write one byte at a time, as a disk may."""

    def write(self, descriptor: int, content: memoryview | bytes) -> int:
        return super().write(descriptor, bytes(content[:1]))


def test_write_once_to_a_free_name_writes_all_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "plan.json"

    assert LocalStorage(ShortCalls()).write_once(str(path), b"content")

    assert path.read_bytes() == b"content"


def test_write_once_with_scratch_never_shows_a_temporary_file_beside(tmp_path: Path) -> None:
    seen: list[list[str]] = []
    target, scratch = tmp_path / "target", tmp_path / "scratch"

    class Watching(OsCalls):
        def link(self, source: str, to: str) -> None:
            seen.append(sorted(item.name for item in target.iterdir()))
            super().link(source, to)

    storage = LocalStorage(Watching())
    storage.write_once(str(target / "_SUCCESS"), b"{}", str(scratch))

    assert seen == [[]]
    assert [item.name for item in target.iterdir()] == ["_SUCCESS"]
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        pytest.param(errno.ENOSPC, StorageFull, id="disk full"),
        pytest.param(errno.EDQUOT, StorageFull, id="quota used up"),
        pytest.param(errno.EFBIG, StorageFull, id="file too large"),
        pytest.param(errno.EACCES, StorageDenied, id="denied"),
        pytest.param(errno.EROFS, StorageDenied, id="read only"),
    ],
)
def test_write_once_refused_by_the_system_is_typed_and_leaves_nothing(
    tmp_path: Path, number: int, expected: type[Exception]
) -> None:
    path = tmp_path / "plan.json"

    with pytest.raises(expected, match=r"plan\.json"):
        LocalStorage(RefusingCalls(number)).write_once(str(path), b"content")

    assert list(tmp_path.iterdir()) == []


def test_sync_all_that_is_refused_waits_for_the_others(tmp_path: Path) -> None:
    synced: list[str] = []

    class Refusing(OsCalls):
        def sync(self, descriptor: int) -> None:
            name = Path(f"/proc/self/fd/{descriptor}").readlink().name
            if name == "a":
                raise OSError(errno.ENOSPC, "full")
            time.sleep(0.05)
            synced.append(name)

    for name in "abc":
        (tmp_path / name).touch()

    with pytest.raises(StorageFull):
        LocalStorage(Refusing()).sync_all(str(tmp_path), ["a", "b", "c"])

    assert sorted(synced) == sorted(["b", "c", tmp_path.name])


def test_sync_all_in_a_fork_has_threads_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    LocalStorage().sync_all(str(tmp_path), ["a"])

    child = os.fork()
    if child == 0:
        try:
            signal.alarm(10)
            LocalStorage().sync_all(str(tmp_path), ["a"])
            os._exit(0)
        finally:
            os._exit(1)

    assert os.waitpid(child, 0)[1] == 0


def test_read_bytes_of_a_directory_is_denied(tmp_path: Path) -> None:
    with pytest.raises(StorageDenied):
        LocalStorage().read_bytes(str(tmp_path))


def test_link_new_to_a_free_name_gives_the_file_both(tmp_path: Path) -> None:
    source, target = tmp_path / "staged", tmp_path / "published"
    source.write_bytes(b"new")

    LocalStorage().link_new(str(source), str(target))

    assert source.samefile(target)


def test_lock_says_nothing_of_a_longer_holder_before(tmp_path: Path) -> None:
    path = str(tmp_path / "partition.lock")
    with LocalStorage().lock(path, "a run with quite a long name"):
        pass

    with LocalStorage().lock(path, "b"):
        said = Path(path).read_text()

    assert said.startswith("b (process ")
    assert "long" not in said
