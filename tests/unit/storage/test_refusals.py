"""Absent is empty; what is there and cannot be looked at is an error, never an empty answer."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

import pytest

from refusing import BlindCalls, as_nobody
from tidegate.errors import SourceFileGone, StorageDenied, StorageSilent
from tidegate.storage import LocalStorage, same_file_system

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOOKS: dict[str, Callable[[LocalStorage, str], object]] = {
    "exists": LocalStorage.exists,
    "length": LocalStorage.length,
    "modified": LocalStorage.modified,
    "list_files": LocalStorage.list_files,
    "delete_tree": LocalStorage.delete_tree,
    "real_path": LocalStorage.real_path,
    "read_bytes": LocalStorage.read_bytes,
    "sha256": LocalStorage.sha256,
}
ABSENT = {"exists": False, "length": None, "modified": None, "list_files": [], "delete_tree": None}


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """Give a directory that only its owner may enter, below directories that everybody may."""
    place = tmp_path
    while place.stat().st_uid == os.getuid() and not place.stat().st_mode & stat.S_IXOTH:
        place.chmod(0o755)
        place = place.parent
    (tmp_path / "work" / "messages").mkdir(parents=True)
    (tmp_path / "work" / "messages" / "a.json").write_bytes(b"{}")
    (tmp_path / "work" / "messages").chmod(0)
    return tmp_path / "work"


@pytest.mark.parametrize("name", sorted(LOOKS))
def test_look_below_a_file_in_place_of_a_directory_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_bytes(b"1")

    with pytest.raises(StorageDenied, match="Not a directory"):
        LOOKS[name](LocalStorage(), str(tmp_path / "file" / "below"))


@pytest.mark.parametrize("name", sorted(LOOKS))
def test_look_through_links_that_go_in_a_circle_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "one").symlink_to(tmp_path / "other")
    (tmp_path / "other").symlink_to(tmp_path / "one")

    with pytest.raises(StorageDenied, match="Too many levels"):
        LOOKS[name](LocalStorage(), str(tmp_path / "one" / "below"))


@pytest.mark.parametrize("name", sorted(ABSENT))
def test_look_at_nothing_finds_nothing(tmp_path: Path, name: str) -> None:
    assert LOOKS[name](LocalStorage(), str(tmp_path / "none" / "below")) == ABSENT[name]


@pytest.mark.parametrize("name", ["read_bytes", "sha256"])
def test_content_of_nothing_is_gone(tmp_path: Path, name: str) -> None:
    with pytest.raises(SourceFileGone):
        LOOKS[name](LocalStorage(), str(tmp_path / "none"))


@pytest.mark.parametrize("name", ["list_files", "delete_tree"])
def test_list_of_a_file_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_bytes(b"1")

    with pytest.raises(StorageDenied, match="Not a directory"):
        LOOKS[name](LocalStorage(), str(tmp_path / "file"))

    assert (tmp_path / "file").exists()


@pytest.mark.parametrize("name", ["exists", "length", "modified", "list_files", "delete_tree"])
@pytest.mark.parametrize(
    ("number", "expected"),
    [
        pytest.param(errno.EACCES, StorageDenied, id="denied"),
        pytest.param(errno.ESTALE, StorageSilent, id="stale handle"),
        pytest.param(errno.EMFILE, StorageSilent, id="too many open files"),
    ],
)
def test_look_that_the_system_refuses_is_typed(
    tmp_path: Path, name: str, number: int, expected: type[Exception]
) -> None:
    (tmp_path / "messages").mkdir()
    place = str(tmp_path / "messages")

    with pytest.raises(expected, match="messages"):
        LOOKS[name](LocalStorage(BlindCalls(place, number)), place)


@pytest.mark.parametrize("name", ["list_files", "delete_tree"])
def test_one_directory_that_cannot_be_listed_spoils_the_list(tmp_path: Path, name: str) -> None:
    for folder in ("messages", "staged"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a").write_bytes(b"1")
    blind = LocalStorage(BlindCalls(str(tmp_path / "messages")))

    with pytest.raises(StorageDenied, match="messages"):
        LOOKS[name](blind, str(tmp_path))

    assert (tmp_path / "messages" / "a").exists()


def test_list_leaves_out_a_directory_that_vanishes_meanwhile(tmp_path: Path) -> None:
    (tmp_path / "attempt").mkdir()
    (tmp_path / "plan.json").write_bytes(b"{}")
    blind = LocalStorage(BlindCalls(str(tmp_path / "attempt"), errno.ENOENT))

    assert blind.list_files(str(tmp_path)) == ["plan.json"]


def test_list_names_links_to_files_and_does_not_follow_those_to_directories(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a").write_bytes(b"1")
    root = tmp_path / "root"
    root.mkdir()
    (root / "folder").symlink_to(tmp_path / "elsewhere")
    (root / "file").symlink_to(tmp_path / "elsewhere" / "a")
    (root / "nowhere").symlink_to(tmp_path / "none")

    assert LocalStorage().list_files(str(root)) == ["file", "nowhere"]


def test_delete_tree_removes_links_and_not_what_they_lead_to(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a").write_bytes(b"1")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "folder").symlink_to(tmp_path / "elsewhere")

    LocalStorage().delete_tree(str(tmp_path / "root"))

    assert sorted(item.name for item in tmp_path.iterdir()) == ["elsewhere"]
    assert (tmp_path / "elsewhere" / "a").exists()


def test_real_path_follows_links_as_far_as_there_is_something(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    assert LocalStorage().real_path(f"{tmp_path}/link/a/b") == f"{tmp_path}/real/a/b"


@pytest.mark.parametrize("name", ["exists", "length", "modified", "real_path", "read_bytes"])
def test_file_that_another_user_hides_is_refused(closed: Path, name: str) -> None:
    def look() -> None:
        with pytest.raises(StorageDenied, match="Permission denied"):
            LOOKS[name](LocalStorage(), str(closed / "messages" / "a.json"))

    as_nobody(look)


@pytest.mark.parametrize("name", ["list_files", "delete_tree"])
def test_directory_that_another_user_hides_is_refused(closed: Path, name: str) -> None:
    def look() -> None:
        with pytest.raises(StorageDenied, match="Permission denied"):
            LOOKS[name](LocalStorage(), str(closed))

    as_nobody(look)


def test_place_that_another_user_hides_has_no_known_file_system(closed: Path) -> None:
    def look() -> None:
        with pytest.raises(StorageDenied, match="Permission denied"):
            same_file_system(str(closed / "messages" / "deep" / "work"), str(closed))

    as_nobody(look)


def test_lock_in_a_directory_that_another_user_hides_is_refused(closed: Path) -> None:
    def look() -> None:
        with (
            pytest.raises(StorageDenied, match="Permission denied"),
            LocalStorage().lock(str(closed / "messages" / "partition.lock"), "run"),
        ):
            pass

    as_nobody(look)


def test_error_of_the_work_under_a_lock_comes_out_as_it_is(tmp_path: Path) -> None:
    with (
        pytest.raises(FileNotFoundError),
        LocalStorage().lock(str(tmp_path / "partition.lock"), "run"),
    ):
        (tmp_path / "none").read_bytes()
