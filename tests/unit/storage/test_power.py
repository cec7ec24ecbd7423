"""What storage gave stands after a power cut, whoever died before (design §4, storage verbs)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from crash.faults import Stopper, stopping_storage
from crash.power import Disk, chance

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.storage import LocalStorage


class Machine:
    """A directory, the way to change it, and a switch."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.root.mkdir()
        self._after = folder / "after"
        stopper = Stopper()
        self.disk = stopper.disk = Disk(self.root, folder / "kept")
        self.storage: LocalStorage = stopping_storage(stopper)

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def left(self) -> dict[str, bytes]:
        """Cut the power: files by name, and directories that are empty by their name and `/`."""
        self.disk.leave(self._after, chance("lost", 0))
        return {
            f"{item.relative_to(self._after)}{'/' if item.is_dir() else ''}": (
                b"" if item.is_dir() else item.read_bytes()
            )
            for item in sorted(self._after.rglob("*"))
            if item.is_file() or not any(item.iterdir())
        }


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_write_once_into_new_directories_stands(machine: Machine) -> None:
    machine.storage.write_once(machine.path("a/b/plan.json"), b"content")

    assert machine.left() == {"a/b/plan.json": b"content"}


def test_write_once_with_scratch_stands_and_its_scratch_may_not(machine: Machine) -> None:
    machine.storage.write_once(machine.path("dt=1/_SUCCESS"), b"{}", machine.path("scratch"))

    assert machine.left() == {"dt=1/_SUCCESS": b"{}"}


def test_write_once_stands_in_the_directory_where_scratch_was_made_first(machine: Machine) -> None:
    machine.storage.write_once(machine.path("orders/a.json"), b"1", machine.path("work/scratch"))
    machine.storage.write_once(machine.path("work/b.json"), b"2")

    assert machine.left() == {"orders/a.json": b"1", "work/b.json": b"2", "work/scratch/": b""}


def test_write_once_under_a_name_that_a_dead_process_gave_stands(machine: Machine) -> None:
    path = machine.path("plan.json")
    with machine.storage.open_new(path) as file:
        file.write(b"content")
    machine.storage.sync(path)

    assert not machine.storage.write_once(path, b"content")

    assert machine.left() == {"plan.json": b"content"}


def test_make_dirs_stands_with_all_above(machine: Machine) -> None:
    machine.storage.make_dirs(machine.path("dt=1/hr=2"))

    assert machine.left() == {"dt=1/hr=2/": b""}


def test_make_dirs_of_one_that_a_dead_process_made_stands(machine: Machine) -> None:
    machine.storage.calls.make_dir(machine.path("dt=1"))

    machine.storage.make_dirs(machine.path("dt=1/hr=2"))

    assert machine.left() == {"dt=1/hr=2/": b""}


def test_make_dirs_not_synced_stands_once_files_below_are(machine: Machine) -> None:
    machine.storage.make_dirs(machine.path("plan"))
    machine.storage.make_dirs(machine.path("plan/staged/w1/dt=1"), synced=False)
    with machine.storage.open_new(machine.path("plan/staged/w1/dt=1/part")) as file:
        file.write(b"rows")

    machine.storage.sync_all(machine.path("plan"), ["staged/w1/dt=1/part"])

    assert machine.left() == {"plan/staged/w1/dt=1/part": b"rows"}


@pytest.mark.parametrize("cut", ["lost", "gone", "doubled", "mixed"])
def test_replaced_file_is_the_old_or_the_new_until_it_is_synced(
    machine: Machine, tmp_path: Path, cut: str
) -> None:
    def put(name: str, content: bytes) -> None:
        with machine.storage.open_new(machine.path(name)) as file:
            file.write(content)
        machine.storage.sync(machine.path(name))

    put("part", b"old")
    machine.storage.sync(str(machine.root))
    put(".part.new", b"new")
    machine.storage.replace(machine.path(".part.new"), machine.path("part"))

    machine.disk.leave(tmp_path / cut, chance(cut, 0))
    assert (tmp_path / cut / "part").read_bytes() in {b"old", b"new"}
    machine.storage.sync(str(machine.root))
    assert machine.left() == {"part": b"new"}


def test_double_loses_what_was_not_forced_to_the_disk(machine: Machine) -> None:
    machine.storage.make_dirs(machine.path("empty"), synced=False)
    with machine.storage.open_new(machine.path("part")) as file:
        file.write(b"rows")
        machine.storage.sync(str(machine.root))
        file.write(b"more")

    assert machine.left() == {"empty/": b"", "part": b""}
