"""What every storage promises; a store is one entry in `STORES`."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tidegate.errors import FileExistsAlready, PartitionBusy, SourceFileGone
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tidegate.storage import Storage

STORES: dict[str, Callable[[], Storage]] = {"local": LocalStorage}
"""How a store is made, in any process: each one reaches the same files."""


@dataclass(frozen=True)
class Store:
    """A store and an empty root in it."""

    make: Callable[[], Storage]
    root: str

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def put(self, name: str, content: bytes) -> None:
        storage = self.make()
        with storage.open_new(self.path(name)) as file:
            file.write(content)
        storage.sync(self.path(name))

    def read(self, name: str) -> bytes:
        return self.make().read_bytes(self.path(name))

    @property
    def names(self) -> list[str]:
        return self.make().list_files(self.root)


@pytest.fixture(params=sorted(STORES))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return Store(STORES[request.param], str(tmp_path))


def test_file_that_was_written_is_what_every_look_sees(store: Store) -> None:
    assert store.make().write_once(store.path("a/b/plan.json"), [b"con", b"tent"])

    look, path = store.make(), store.path("a/b/plan.json")
    assert look.read_bytes(path) == b"content"
    assert (look.exists(path), look.length(path)) == (True, 7)
    assert look.sha256(path) == hashlib.sha256(b"content").hexdigest()
    assert look.modified(path) is not None
    assert look.list_files(store.root) == ["a/b/plan.json"]
    assert look.list_names(store.path("a")) == ["b"]


def test_version_is_that_of_one_file(store: Store) -> None:
    store.put("plan.json", b"first")
    look, path = store.make(), store.path("plan.json")
    first = look.version(path)

    assert first is not None
    assert store.make().version(path) == first
    look.delete(path)
    store.put("plan.json", b"other")
    assert look.version(path) != first


def test_look_at_nothing_finds_nothing(store: Store) -> None:
    look, path = store.make(), store.path("gone.json")

    assert (look.exists(path), look.length(path), look.modified(path)) == (False, None, None)
    assert look.version(path) is None
    assert look.list_files(path) == look.list_names(path) == []
    with pytest.raises(SourceFileGone, match=r"gone\.json"):
        look.read_bytes(path)


def test_write_once_to_a_taken_name_changes_nothing(store: Store) -> None:
    store.make().write_once(store.path("plan.json"), b"first")

    assert not store.make().write_once(store.path("plan.json"), b"second")

    assert store.read("plan.json") == b"first"
    assert store.names == ["plan.json"]


def test_write_once_by_many_writers_at_once_has_one_winner(store: Store) -> None:
    contents = [f"writer {number}".encode() * 1000 for number in range(8)]

    def write(content: bytes) -> bool:
        return store.make().write_once(store.path("message.json"), content)

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(write, contents))

    assert won.count(True) == 1
    assert store.read("message.json") == contents[won.index(True)]
    assert store.names == ["message.json"]


def test_write_once_of_what_fails_half_way_leaves_the_name_free(store: Store) -> None:
    def broken() -> Iterator[bytes]:
        yield b"half"
        msg = "the plan cannot be written"
        raise RuntimeError(msg)

    with pytest.raises(RuntimeError):
        store.make().write_once(store.path("plan.json"), broken())

    assert store.names == []
    assert store.make().write_once(store.path("plan.json"), b"whole")


def test_open_new_on_a_taken_name_is_refused(store: Store) -> None:
    store.put("part", b"1")

    with pytest.raises(FileExistsAlready):
        store.make().open_new(store.path("part"))

    assert store.read("part") == b"1"


def test_copy_is_a_file_of_its_own(store: Store) -> None:
    store.put("raw", b"content")

    store.make().copy_new(store.path("raw"), store.path("copy"))
    store.make().delete(store.path("raw"))
    store.put("raw", b"changed")

    assert (store.read("raw"), store.read("copy")) == (b"changed", b"content")


def test_copy_to_a_taken_name_replaces_nothing(store: Store) -> None:
    store.put("raw", b"content")
    store.put("copy", b"other")

    with pytest.raises(FileExistsAlready):
        store.make().copy_new(store.path("raw"), store.path("copy"))

    assert store.read("copy") == b"other"


def test_copy_of_what_is_gone_leaves_nothing(store: Store) -> None:
    with pytest.raises(SourceFileGone):
        store.make().copy_new(store.path("raw"), store.path("copy"))

    assert store.names == []


def test_link_new_to_a_free_name_gives_the_file_both(store: Store) -> None:
    store.put("staged", b"new")

    store.make().link_new(store.path("staged"), store.path("published"))
    store.make().delete(store.path("staged"))

    assert store.names == ["published"]
    assert store.read("published") == b"new"


def test_link_new_to_a_taken_name_replaces_nothing(store: Store) -> None:
    store.put("staged", b"new")
    store.put("published", b"old")

    with pytest.raises(FileExistsAlready):
        store.make().link_new(store.path("staged"), store.path("published"))

    assert (store.read("staged"), store.read("published")) == (b"new", b"old")


def test_replace_puts_a_file_in_the_place_of_another(store: Store) -> None:
    store.put("new", b"new")
    store.put("kept", b"old")

    store.make().replace(store.path("new"), store.path("kept"))

    assert store.names == ["kept"]
    assert store.read("kept") == b"new"


def test_replace_with_what_is_gone_leaves_the_file_as_it_was(store: Store) -> None:
    store.put("kept", b"old")

    with pytest.raises(SourceFileGone):
        store.make().replace(store.path("new"), store.path("kept"))

    assert store.read("kept") == b"old"


def test_delete_takes_only_what_is_named_and_may_be_repeated(store: Store) -> None:
    for name in ("attempt/dt=1/part", "attempt/part", "attempts/part"):
        store.make().write_once(store.path(name), b"1")

    for _ in range(2):
        store.make().delete(store.path("attempt/part"))
        assert store.names == ["attempt/dt=1/part", "attempts/part"]
    for _ in range(2):
        store.make().delete_tree(store.path("attempt"))
        assert store.names == ["attempts/part"]


def test_files_that_are_synced_together_stand(store: Store) -> None:
    storage = store.make()
    storage.make_dirs(store.path("staged/dt=1"), synced=False)
    with storage.open_new(store.path("staged/dt=1/part")) as file:
        file.write(b"1")

    storage.sync_all(store.root, ["staged/dt=1/part"])

    assert store.names == ["staged/dt=1/part"]


def test_lock_held_elsewhere_names_the_holder_and_is_free_afterwards(store: Store) -> None:
    path = store.path("locks/partition.lock")

    with (
        store.make().lock(path, "run a"),
        pytest.raises(PartitionBusy, match="run a"),
        store.make().lock(path, "run b"),
    ):
        pass

    with store.make().lock(path, "run b"):
        pass


def die_holding(make: Callable[[], Storage], path: str) -> None:
    with make().lock(path, "run a"):
        os._exit(9)


def test_lock_after_its_holder_died_is_free(store: Store) -> None:
    path = store.path("partition.lock")
    dying = multiprocessing.get_context("fork").Process(target=die_holding, args=(store.make, path))
    dying.start()
    dying.join()
    assert dying.exitcode == 9

    with (
        store.make().lock(path, "run b"),
        pytest.raises(PartitionBusy, match="run b"),
        store.make().lock(path, "run c"),
    ):
        pass
