"""A plan whose files may be gone is never revived: the same inputs get the next name."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.assembly import Assembly
from tidegate.model.exchange import SpreadFile
from tidegate.model.file_slice import FileSlice
from tidegate.model.message import CommitMessage, EventTimes, PartFile, Staged
from tidegate.model.partition import Partition
from tidegate.model.plan import Piece, Split, SubSplit
from tidegate.model.upload import Upload
from tidegate.model.wire import pretty
from tidegate.pipeline.load.plan_names import PlanNames
from tidegate.pipeline.state.places import Roots
from tidegate.pipeline.state.plan_files import write_splits
from tidegate.stage import layout
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from pathlib import Path

DAY = Partition((("dt", "2026-01-01"),))
OTHER = Partition((("dt", "2026-01-02"),))
STORAGE = LocalStorage()


class Life:
    """A window of one pipeline, with what the ledger and the work directory know of it."""

    def __init__(self, folder: Path, effective: str | None = None) -> None:
        self.roots = Roots(f"{folder}/out", f"{folder}/work")
        self.taken: Any = SimpleNamespace(window=SimpleNamespace(sequence=1), plan_digest=effective)
        self.announced: set[str] = set() if effective is None else {effective}
        self.pending = {DAY: "pending"}
        self.brought = [DAY]
        self.stood: dict[str, str] = {}
        self.storage = STORAGE
        self.defers = True

    @property
    def names(self) -> PlanNames:
        contributions = [
            SimpleNamespace(partition=it, messages=("s1",), rows=1) for it in self.brought
        ]
        revision = SimpleNamespace(contributions=self.stood, commit_plan="lost.commit.json")
        ledger: Any = SimpleNamespace(
            plans=SimpleNamespace(was_announced=lambda _, digest: digest in self.announced),
            contributions=SimpleNamespace(of_window=lambda _: contributions),
            partitions=SimpleNamespace(
                all=lambda: [
                    SimpleNamespace(partition=it, pending=state)
                    for it, state in self.pending.items()
                ]
            ),
            publications=SimpleNamespace(revisions=lambda _: [revision] if self.stood else []),
        )
        return PlanNames(self.roots, ledger, self.storage, defers=self.defers)

    def stage(
        self, plan: str, *, size: int = 3, spread: bool = False, sub_split: str = "s1"
    ) -> str:
        """Write the message of one sub-split and its part file; gives the plan's directory."""
        root = layout.plan_root(self.roots.work, 1, plan)
        part = PartFile(DAY, "part-1", "staged/part-1", 3, "00", 1, EventTimes())
        file = SpreadFile("exchange/s1", 3, 1) if spread else None
        staged = Staged(() if spread else (part,), (), 1, 1)
        message = CommitMessage(sub_split, "a", staged, spread=file)
        STORAGE.write_once(layout.message_file(root, sub_split), pretty(message.to_json()))
        name = "exchange/s1" if spread else "staged/part-1"
        STORAGE.write_once(f"{root}/{name}", b"x" * size)
        return root

    def choose(self) -> str:
        return self.names.choose(self.taken, lambda again: f"p{again}")


@given(used=st.sets(st.integers(0, 4)))
def test_name_that_was_announced_is_used_up(
    used: set[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    life = Life(tmp_path_factory.mktemp("life"))
    life.announced = {f"p{number}" for number in used}

    found = life.choose()

    assert found == f"p{min(set(range(6)) - used)}"


def test_effective_plan_is_found_done(tmp_path: Path) -> None:
    life = Life(tmp_path, "p0")
    life.stage("p0")

    assert life.choose() == "p0"


@pytest.mark.parametrize("size", [0, 2], ids=["empty", "cut"])
def test_effective_plan_with_a_damaged_file_is_staged_under_the_next_name(
    tmp_path: Path, size: int
) -> None:
    life = Life(tmp_path, "p0")
    life.stage("p0", size=size)

    assert life.choose() == "p1"


def test_file_that_a_commit_moved_to_its_target_is_not_lost(tmp_path: Path) -> None:
    life = Life(tmp_path, "p0")
    root = life.stage("p0")
    STORAGE.delete(f"{root}/staged/part-1")
    assert life.choose() == "p1"

    STORAGE.write_once(f"{life.roots.partition(DAY)}/part-1", b"xxx")

    assert life.choose() == "p0"


@pytest.mark.parametrize("why", ["published", "nothing pending", "another partition"])
def test_files_that_no_publication_waits_for_may_be_gone(tmp_path: Path, why: str) -> None:
    life = Life(tmp_path, "p0")
    life.stage("p0", size=0)
    if why == "published":
        life.stood = {"1": "p0"}
    elif why == "nothing pending":
        life.pending = {DAY: "none"}
    else:
        life.pending, life.brought = {OTHER: "pending"}, [OTHER]

    assert life.choose() == "p0"


def test_revision_of_another_plan_does_not_hold_the_files(tmp_path: Path) -> None:
    life = Life(tmp_path, "p1")
    life.announced = {"p0", "p1"}
    life.stood = {"1": "p0"}
    life.stage("p1", size=0)

    assert life.choose() == "p2"


def _planned(life: Life, *sub_splits: str) -> str:
    root = layout.plan_root(life.roots.work, 1, "p0")
    parts = [SubSplit((Piece(FileSlice(name), 1, 1),)) for name in sub_splits]
    write_splits(STORAGE, root, [Split(tuple(parts), 1)])
    return root


def test_message_whose_files_are_gone_is_hollow(tmp_path: Path) -> None:
    life = Life(tmp_path)
    _planned(life, "a")
    root = life.stage("p0")
    assert life.names.hollow(root) == []

    STORAGE.delete(f"{root}/staged/part-1")

    assert life.names.hollow(root) == [layout.message_file(root, "s1")]


@pytest.mark.parametrize(("sub_splits", "is_hollow"), [("a", False), ("ab", True)])
def test_rows_handed_on_are_missed_only_while_sub_splits_are_not_done(
    tmp_path: Path, sub_splits: str, is_hollow: bool
) -> None:
    """What sub-splits handed each other goes once all of them are done."""
    life = Life(tmp_path)
    _planned(life, *sub_splits)
    root = life.stage("p0", spread=True)
    STORAGE.delete(f"{root}/exchange/s1")

    assert bool(life.names.hollow(root)) == is_hollow
    assert life.names.spent(root) == [layout.message_file(root, "s1")]


@pytest.mark.parametrize("gone", ["handed on", "part file", "message"])
def test_what_was_assembled_goes_where_rows_may_be_handed_on_again(
    tmp_path: Path, gone: str
) -> None:
    """Staged again, a sub-split may hand on other rows than before, and keep others."""
    life = Life(tmp_path)
    reads, assembles = SubSplit(()), SubSplit((), assembly=Assembly(0, 1, 1, 32))
    root = f"{tmp_path}/work/windows/000001/p0"
    STORAGE.make_dirs(root)
    write_splits(STORAGE, root, [Split((reads,), 1), Split((assembles,), 1)])
    read, assembled = (layout.message_file(root, item.id) for item in (reads, assembles))
    life.stage("p0", spread=gone == "handed on", sub_split=reads.id)
    STORAGE.write_once(assembled, pretty(CommitMessage(assembles.id, "a").to_json()))
    assert life.names.hollow(root) == life.names.spent(root) == []

    match gone:
        case "handed on":
            STORAGE.delete(f"{root}/exchange/s1")
            found, also = life.names.spent(root), {read}
        case "part file":
            STORAGE.delete(f"{root}/staged/part-1")
            found, also = life.names.hollow(root), {read}
        case _:
            STORAGE.delete(read)
            found, also = life.names.hollow(root), set()

    assert set(found) == {assembled, *also}


def test_plan_is_silent_while_a_message_that_is_waited_for_is_gone(tmp_path: Path) -> None:
    life = Life(tmp_path, "p0")
    root = life.stage("p0")
    assert not life.names.is_silent(life.taken)

    STORAGE.delete(layout.message_file(root, "s1"))

    assert life.names.is_silent(life.taken)
    life.pending = {DAY: "none"}
    assert not life.names.is_silent(life.taken)


@dataclass(frozen=True)
class Store(LocalStorage):
    """A disk that pretends to keep uploads, all of which stand or none."""

    stands: bool = True

    def uploads(self, path: str) -> Any:
        return SimpleNamespace(standing=lambda sent: [self.stands for _ in sent])


@pytest.mark.parametrize(
    ("stands", "defers", "found"),
    [
        pytest.param(True, True, "p0", id="stands"),
        pytest.param(False, True, "p1", id="gone"),
        pytest.param(True, False, "p1", id="has to be staged by now"),
    ],
)
def test_file_that_was_sent_is_lost_if_its_upload_cannot_be_completed(
    tmp_path: Path, stands: bool, defers: bool, found: str
) -> None:
    life = Life(tmp_path, "p0")
    life.storage, life.defers = Store(stands=stands), defers
    root = layout.plan_root(life.roots.work, 1, "p0")
    upload = Upload(f"{life.roots.partition(DAY)}/part-1", "id", "writer", ("tag",))
    part = PartFile(DAY, "part-1", "staged/part-1", 3, "00", 1, EventTimes(), upload)
    message = CommitMessage("s1", "a", Staged((part,), (), 1, 1))
    STORAGE.write_once(layout.message_file(root, "s1"), pretty(message.to_json()))

    assert life.choose() == found
