"""The storage verbs: whole or not at all, first writer wins, nothing outside the root."""

from __future__ import annotations

import errno
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from tidegate.errors import (
    FileContentWrong,
    FileLengthWrong,
    PathEscapes,
    StagedFileMissing,
    StorageDenied,
    StorageFull,
)
from tidegate.storage import LocalStorage, OsCalls, below, has_to_move, same_file_system

MEMORY = Path("/dev/shm")


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


CONTENT = b"four"
SHA = hashlib.sha256(CONTENT).hexdigest()


def is_to_move(folder: Path) -> bool:
    staged, target = str(folder / "staged"), str(folder / "target")
    return has_to_move(LocalStorage(), staged, target, length=len(CONTENT), sha256=SHA, window=7)


def test_has_to_move_staged_only_has_to_move(tmp_path: Path) -> None:
    """PC-F20."""
    (tmp_path / "staged").write_bytes(CONTENT)

    assert is_to_move(tmp_path)


def test_has_to_move_target_only_is_done(tmp_path: Path) -> None:
    """PC-F22."""
    (tmp_path / "target").write_bytes(CONTENT)

    assert not is_to_move(tmp_path)


def test_has_to_move_both_equal_is_done(tmp_path: Path) -> None:
    """PC-F25, as a crash inside the move leaves it."""
    (tmp_path / "staged").write_bytes(CONTENT)
    os.link(tmp_path / "staged", tmp_path / "target")

    assert not is_to_move(tmp_path)


def test_has_to_move_neither_names_both_places_and_the_window(tmp_path: Path) -> None:
    """PC-F24."""
    with pytest.raises(StagedFileMissing) as refused:
        is_to_move(tmp_path)

    assert refused.value.window == 7
    assert str(tmp_path / "target") in str(refused.value)


@pytest.mark.parametrize("name", ["staged", "target"])
@pytest.mark.parametrize("found", [b"", b"abc", b"fiver"], ids=["empty", "shorter", "longer"])
def test_has_to_move_a_file_of_another_length_is_refused(
    tmp_path: Path, name: str, found: bytes
) -> None:
    """PC-F21 and F23."""
    (tmp_path / name).write_bytes(found)

    with pytest.raises(FileLengthWrong) as refused:
        is_to_move(tmp_path)

    assert (refused.value.expected, refused.value.found) == (len(CONTENT), len(found))


def test_has_to_move_both_with_a_shorter_target_is_refused(tmp_path: Path) -> None:
    """PC-F26."""
    (tmp_path / "staged").write_bytes(CONTENT)
    (tmp_path / "target").write_bytes(b"fou")

    with pytest.raises(FileLengthWrong, match="target"):
        is_to_move(tmp_path)


def test_has_to_move_both_with_other_bytes_at_the_target_is_refused(tmp_path: Path) -> None:
    """PC-F25, second half."""
    (tmp_path / "staged").write_bytes(CONTENT)
    (tmp_path / "target").write_bytes(b"FOUR")

    with pytest.raises(FileContentWrong):
        is_to_move(tmp_path)


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
