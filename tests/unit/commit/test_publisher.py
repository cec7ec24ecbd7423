"""The publisher from every state that a predecessor can leave (PC-F20 to F27, PC-V34)."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from crash.faults import Stopper, stopping_storage
from crash.power import CUTS, chance
from crash.power import Disk as Machine
from dying import DyingCalls, Killed
from tidegate.commit.commit_files import Places
from tidegate.commit.policies import PolicyContext, SuccessFile
from tidegate.commit.publisher import Publisher
from tidegate.errors import (
    FenceLost,
    FileContentWrong,
    FileExistsAlready,
    FileLengthWrong,
    MetastoreSilent,
    PartitionBusy,
    PathEscapes,
    PolicyFailed,
    StagedFileMissing,
    TidegateError,
)
from tidegate.model.partition import Partition
from tidegate.model.publication import (
    CommitPlan,
    Outcome,
    Publication,
    PublicationState,
    PublishedFile,
    Undo,
    Verdict,
)
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.storage import DirectoryEntry

DAY = Partition((("dt", "2026-02-01"),))
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def file(name: str, content: bytes) -> PublishedFile:
    return PublishedFile(
        name=name,
        length=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        rows=1,
        window=1,
        plan_digest="p",
        staged=f"staged/{name}",
    )


FIRST, SECOND = b"first new", b"second new"
NEW = (file("new-1", FIRST), file("new-2", SECOND))
OLD = file("old", b"old")
REVISION_2 = {"new-1": FIRST, "new-2": SECOND}


def plan(**changes: object) -> CommitPlan:
    publication = Publication(
        partition=DAY,
        base_revision=1,
        adds=NEW,
        removes=(OLD,),
        content=NEW,
        contributions={"1": "p"},
    )
    made = CommitPlan(
        pipeline="orders",
        publication=publication,
        policies=(),
        marker_name="_SUCCESS",
        marker='{"revision": 2}',
        watermark=None,
        source_range={},
        verdict=Verdict(Outcome.PASS, (), 2, "none", NOW),
        approval=None,
        owner="cli",
        prepared_at=NOW,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


@dataclass
class Steps:
    """A ledger that remembers what it was told, and may refuse."""

    told: list[PublicationState] = field(default_factory=list)
    lost: bool = False

    def check_right(self) -> None:
        if self.lost:
            raise FenceLost(pipeline="orders", subject="dt=2026-02-01", held=1, found=2)

    def advance(self, to: PublicationState) -> None:
        self.check_right()
        self.told.append(to)


@dataclass
class Disk:
    """Work directory and table with revision 1 standing and two staged files."""

    root: Path
    policies: list[tuple[str, object]] = field(
        default_factory=lambda: [("success-file", SuccessFile())]
    )
    steps: Steps = field(default_factory=Steps)

    def __post_init__(self) -> None:
        self.staged.mkdir(parents=True)
        self.partition.mkdir(parents=True)
        (self.staged / "new-1").write_bytes(FIRST)
        (self.staged / "new-2").write_bytes(SECOND)
        (self.partition / "old").write_bytes(b"old")
        (self.partition / "_SUCCESS").write_bytes(b'{"revision": 1}')

    @property
    def staged(self) -> Path:
        return self.root / "work" / "staged"

    @property
    def partition(self) -> Path:
        return self.root / "table" / "dt=2026-02-01"

    def places(self) -> Places:
        return Places(
            work=str(self.root / "work"),
            table_root=str(self.root / "table"),
            partition_root=str(self.partition),
            lock=str(self.root / "work" / "lock"),
            scratch=str(self.root / "work" / "scratch"),
            retired=lambda name: str(self.root / "work" / "retired" / name),
        )

    def commit(self, made: CommitPlan | None = None, storage: LocalStorage | None = None) -> None:
        publisher = Publisher(storage or LocalStorage(), self.places(), self.policies)  # type: ignore[arg-type]
        publisher.carry_out(made or plan(), "cli", self.steps)

    def take_back(self, storage: LocalStorage | None = None) -> None:
        Publisher(storage or LocalStorage(), self.places(), ()).take_back(plan(), "cli", self.steps)

    @classmethod
    def found(cls, root: Path) -> Disk:
        """Give one that is there already, or will be."""
        made = object.__new__(cls)
        made.root = root
        return made

    def wrong(self) -> list[str]:
        """Say which marker does not tell what stands beside it, and which file is nowhere."""
        standing = {item.name: item.read_bytes() for item in self.partition.iterdir()}
        marker = standing.pop("_SUCCESS", None)
        contents = {b'{"revision": 1}': {"old": b"old"}, b'{"revision": 2}': REVISION_2}
        told = []
        if marker is not None and standing != contents.get(marker):
            told.append(f"{marker!r} beside {standing}")
        staged = {item.name: item.read_bytes() for item in self.staged.iterdir()}
        for name, content in REVISION_2.items():
            if content not in (staged.get(name), standing.get(name)):
                told.append(f"{name} is lost")
        if "old" not in standing and not (self.root / "work" / "retired" / "old").exists():
            told.append("old is lost, which may be a part of a joined file")
        return told

    def files(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and path.name != "lock"
        }


AFTER = {
    "table/dt=2026-02-01/_SUCCESS": b'{"revision": 2}',
    "table/dt=2026-02-01/new-1": FIRST,
    "table/dt=2026-02-01/new-2": SECOND,
    "work/retired/old": b"old",
}


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def test_commit_moves_adds_retires_removes_and_writes_the_marker(disk: Disk) -> None:
    disk.commit()

    assert disk.files() == AFTER
    assert disk.steps.told == [PublicationState.MOVED, PublicationState.MARKED]


def test_commit_again_ends_the_same(disk: Disk) -> None:
    disk.commit()
    disk.commit()

    assert disk.files() == AFTER


def test_commit_retracts_the_marker_under_its_former_name(disk: Disk) -> None:
    (disk.partition / "_SUCCESS").rename(disk.partition / "_DONE")

    disk.commit(plan(former_marker="_DONE"))

    assert disk.files() == AFTER


def test_revision_two_retracts_durably_then_moves_durably_then_marks(disk: Disk) -> None:
    stopper = Stopper()

    disk.commit(storage=stopping_storage(stopper))

    made = [re.sub(r"[0-9]+-[0-9a-f]{8}", "*", name.strip()) for name in stopper.made]
    assert made == [
        "open_lock lock",
        "rewrite",
        "unlink _SUCCESS",
        "sync",
        "link new-1 new-1",
        "link new-2 new-2",
        "sync",
        "unlink new-1",
        "unlink new-2",
        "make_dir retired",
        "sync",
        "link old old",
        "sync",
        "unlink old",
        "sync",
        "make_dir scratch",
        "create ._SUCCESS.*",
        "write",
        "sync",
        "link ._SUCCESS.* _SUCCESS",
        "unlink ._SUCCESS.*",
        "sync",
    ]


@pytest.mark.parametrize("cut", CUTS)
def test_power_cut_at_any_change_leaves_true_markers_and_all_rows(tmp_path: Path, cut: str) -> None:
    disk = Disk(tmp_path / "root")
    machine = Machine(disk.root, tmp_path / "kept")
    stopper = Stopper(disk=machine)
    wrong: list[str] = []

    def look() -> None:
        number = len(stopper.made)
        for seed in range(8 if cut == "mixed" else 1):
            after = Disk.found(tmp_path / f"after {number} {seed}")
            machine.leave(after.root, chance(cut, 100 * number + seed))
            wrong.extend(f"before {number}: {item}" for item in after.wrong())

    stopper.between = look
    disk.commit(storage=stopping_storage(stopper))
    stopper.made.append("the end")
    look()

    assert wrong == []


def moved(disk: Disk) -> None:
    (disk.staged / "new-1").rename(disk.partition / "new-1")


def linked(disk: Disk) -> None:
    os.link(disk.staged / "new-1", disk.partition / "new-1")


def retracted(disk: Disk) -> None:
    (disk.partition / "_SUCCESS").unlink()


def retiring(disk: Disk) -> None:
    for name in ("new-1", "new-2"):
        (disk.staged / name).rename(disk.partition / name)
    (disk.root / "work" / "retired").mkdir()
    os.link(disk.partition / "old", disk.root / "work" / "retired" / "old")


def retired_and_swept(disk: Disk) -> None:
    for name in ("new-1", "new-2"):
        (disk.staged / name).rename(disk.partition / name)
    (disk.partition / "old").unlink()


def marked(disk: Disk) -> None:
    disk.commit()
    disk.steps.told.clear()


@pytest.mark.parametrize(
    "left",
    [
        pytest.param(retracted, id="F20 nothing moved"),
        pytest.param(moved, id="F22 moved"),
        pytest.param(linked, id="F25 both names"),
        pytest.param(retiring, id="both names of a removed file"),
        pytest.param(marked, id="marked and not recorded"),
    ],
)
def test_replay_from_what_a_predecessor_left_ends_the_same(disk: Disk, left: object) -> None:
    left(disk)  # type: ignore[operator]

    disk.commit()

    assert disk.files() == AFTER
    assert disk.steps.told == [PublicationState.MOVED, PublicationState.MARKED]


def test_replay_after_the_retired_file_was_swept_ends_the_same(disk: Disk) -> None:
    retired_and_swept(disk)

    disk.commit()

    assert disk.files() == {name: item for name, item in AFTER.items() if "retired" not in name}


@pytest.mark.parametrize(
    ("staged", "target", "expected"),
    [
        pytest.param(b"short", None, FileLengthWrong, id="F21"),
        pytest.param(None, b"short", FileLengthWrong, id="F23"),
        pytest.param(None, None, StagedFileMissing, id="F24"),
        pytest.param(FIRST, b"First new", FileContentWrong, id="F25 other bytes"),
        pytest.param(FIRST, b"short", FileLengthWrong, id="F26"),
    ],
)
@pytest.mark.parametrize("which", ["new-1", "new-2"])
def test_damage_is_found_before_anything_changes(
    disk: Disk,
    staged: bytes | None,
    target: bytes | None,
    expected: type[TidegateError],
    which: str,
) -> None:
    """PC-F27, V29: the marker of the revision before still stands, over its data."""
    (disk.staged / which).unlink()
    right = FIRST if which == "new-1" else SECOND
    if staged is not None:
        (disk.staged / which).write_bytes(right if staged == FIRST else staged)
    if target is not None:
        (disk.partition / which).write_bytes(
            right.swapcase() if expected is FileContentWrong else target
        )
    before = disk.files()

    with pytest.raises(expected) as refused:
        disk.commit()

    assert refused.value.values.get("window", 1) == 1
    assert disk.files() == before
    assert disk.steps.told == []


class Died(BaseException):
    """The process is gone."""


class Dying(Stopper):
    def _die(self) -> None:
        raise Died


def dies(act: Callable[[LocalStorage], None], at: int) -> bool:
    """Die before a change; False if it came to its end before."""
    try:
        act(stopping_storage(Dying(at)))
    except Died:
        return True
    return False


def test_commit_that_died_anywhere_is_taken_back_from_anywhere(tmp_path: Path) -> None:
    marker, retired = "table/dt=2026-02-01/_SUCCESS", "work/retired/old"
    deaths: Counter[str] = Counter()
    for committing, undoing in itertools.product(range(1, 25), range(1, 25)):
        disk = Disk(tmp_path / f"{committing} {undoing}")
        before = disk.files()
        deaths["commit"] += dies(
            lambda storage, disk=disk: disk.commit(storage=storage), committing
        )
        deaths["undo"] += dies(disk.take_back, undoing)

        disk.take_back()

        left = {name: item for name, item in disk.files().items() if "/scratch/" not in name}
        assert left.pop(marker, before[marker]) == before.pop(marker)
        assert left.pop(retired, b"old") == b"old"
        assert left == before
    assert 0 < deaths["commit"] < 24 * 24, "a commit has more changes"
    assert deaths["undo"] > 100


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("committing", [10, 11, 13])
def test_what_was_taken_back_stays_so_after_a_power_cut_whoever_died_before(
    tmp_path: Path, cut: str, committing: int
) -> None:
    for undoing in range(1, 20):
        disk = Disk(tmp_path / f"{undoing} root")
        assert dies(lambda storage, disk=disk: disk.commit(storage=storage), committing)
        machine = Machine(disk.root, tmp_path / f"{undoing} kept")
        with contextlib.suppress(Died):
            disk.take_back(stopping_storage(Dying(undoing, disk=machine)))

        disk.take_back(stopping_storage(Stopper(disk=machine)))

        after = Disk.found(tmp_path / f"{undoing} after")
        machine.leave(after.root, chance(cut, undoing))
        assert {item.name for item in after.partition.iterdir()} == {"old"}
        assert {item.name for item in after.staged.iterdir()} == {"new-1", "new-2"}


def test_commit_with_a_lost_fence_changes_nothing(disk: Disk) -> None:
    disk.steps.lost = True
    before = disk.files()

    with pytest.raises(FenceLost):
        disk.commit()

    assert disk.files() == before


def test_take_back_with_a_lost_fence_changes_nothing(disk: Disk) -> None:
    disk.commit()
    disk.steps.lost = True
    before = disk.files()

    with pytest.raises(FenceLost):
        disk.take_back()

    assert disk.files() == before


def test_take_back_retracts_the_marker_of_either_name(disk: Disk) -> None:
    renamed = plan(former_marker="_OLD")
    (disk.partition / "_OLD").write_bytes(b"{}")
    disk.commit()

    Publisher(LocalStorage(), disk.places(), ()).take_back(renamed, "cli", disk.steps)

    assert {item.name for item in disk.partition.iterdir()} == {"old"}


def test_take_back_of_a_commit_without_files_of_its_own_retracts_its_marker(disk: Disk) -> None:
    publication = replace(plan().publication, adds=(), removes=(), content=(OLD,))
    only_marked = plan(publication=publication)
    disk.commit(only_marked)

    Publisher(LocalStorage(), disk.places(), ()).take_back(only_marked, "cli", disk.steps)

    assert {item.name for item in disk.partition.iterdir()} == {"old"}


def test_take_back_of_a_commit_that_changed_nothing_leaves_the_marker_that_stands(
    disk: Disk,
) -> None:
    before = disk.files()

    disk.take_back()

    assert disk.files() == before


def test_commit_while_another_moves_files_changes_nothing(disk: Disk) -> None:
    before = disk.files()

    with (
        LocalStorage().lock(disk.places().lock, "the other"),
        pytest.raises(PartitionBusy, match="the other"),
    ):
        disk.commit()

    assert disk.files() == before


@dataclass
class Listed:
    """A policy with a list, or a table, that may have other revisions than the disk."""

    revisions: list[int] = field(default_factory=list)

    def differs(self, context: PolicyContext) -> str | None:
        return None if context.revision in self.revisions else "no entry"

    def commit(self, context: PolicyContext) -> None:
        self.revisions.append(context.revision)

    hold = commit


def test_entry_is_written_anew_where_it_differs(disk: Disk) -> None:
    listed = Listed()
    publisher = Publisher(LocalStorage(), disk.places(), [("list", listed)])

    said = [publisher.list_again(plan(), "cli", disk.steps) for _ in range(2)]

    assert said == [("no entry",), ()]
    assert listed.revisions == [2]


def test_entry_is_not_written_anew_with_a_lost_fence(disk: Disk) -> None:
    listed = Listed()
    disk.steps.lost = True

    with pytest.raises(FenceLost):
        Publisher(LocalStorage(), disk.places(), [("list", listed)]).list_again(
            plan(), "cli", disk.steps
        )

    assert listed.revisions == []


def test_revision_is_not_held_while_another_moves_files(disk: Disk) -> None:
    listed = Listed()
    before = disk.files()
    publisher = Publisher(LocalStorage(), disk.places(), (), table=listed)  # type: ignore[arg-type]

    with (
        LocalStorage().lock(disk.places().lock, "the other"),
        pytest.raises(PartitionBusy, match="the other"),
    ):
        publisher.hold(plan().publication, "orders", "cli")

    assert listed.revisions == []
    assert disk.files() == before
    publisher.hold(plan().publication, "orders", "cli")
    assert listed.revisions == [2]


def test_what_an_undo_removes_is_staged_again(disk: Disk) -> None:
    undone = Undo(restores=1, set_aside={"1": "p"}, counted_as={})

    disk.commit(plan(publication=replace(plan().publication, undone=undone)))

    expected = {name.replace("retired", "staged"): item for name, item in AFTER.items()}
    assert disk.files() == expected


def test_commit_through_a_link_out_of_the_table_changes_nothing(disk: Disk) -> None:
    """PC-P11."""
    elsewhere = disk.root / "elsewhere"
    disk.partition.rename(elsewhere)
    disk.partition.symlink_to(elsewhere)
    before = disk.files()

    with pytest.raises(PathEscapes):
        disk.commit()

    assert disk.files() == before


def test_content_that_vanished_before_the_marker_is_noticed(disk: Disk) -> None:
    """PC-F17: the marker will list it, so it has to be there; nothing changes before that."""
    kept = file("kept", b"kept")
    publication = replace(plan().publication, content=(*NEW, kept))
    before = disk.files()

    with pytest.raises(StagedFileMissing) as missed:
        disk.commit(plan(publication=publication))

    target = str(disk.partition / "kept")
    assert missed.value.values == {
        "path": str(disk.staged / "kept"),
        "target": target,
        "window": 1,
    }
    assert disk.files() == before


@pytest.mark.parametrize("left", [b"kep", b"kept!"], ids=["cut", "longer"])
def test_content_of_another_length_before_the_marker_is_noticed(disk: Disk, left: bytes) -> None:
    """PC-F17, for files that the revision before left there."""
    publication = replace(plan().publication, content=(*NEW, file("kept", b"kept")))
    (disk.partition / "kept").write_bytes(left)
    before = disk.files()

    with pytest.raises(FileLengthWrong) as found:
        disk.commit(plan(publication=publication))

    path = str(disk.partition / "kept")
    expected = {"path": path, "window": 1, "expected": 4, "found": len(left)}
    assert found.value.values == expected
    assert disk.files() == before


@dataclass
class Watching:
    """A policy that notes what stands when it is called, and fails so many times."""

    failures: int = 0
    seen: list[tuple[PolicyContext, set[str]]] = field(default_factory=list)

    def commit(self, context: PolicyContext) -> None:
        standing = {item.name for item in os.scandir(context.partition_root)}
        self.seen.append((context, standing))
        if len(self.seen) <= self.failures:
            msg = "the metastore is away"
            raise RuntimeError(msg)


def test_policy_before_the_marker_sees_all_files_and_no_marker(disk: Disk) -> None:
    watching = Watching()
    disk.policies.insert(0, ("watch", watching))

    disk.commit()

    (context, standing) = watching.seen[0]
    assert standing == {"new-1", "new-2"}
    assert context == PolicyContext(
        pipeline="orders",
        table_root=str(disk.root / "table"),
        partition=DAY,
        partition_root=str(disk.partition),
        revision=2,
        key=plan().publication.digest,
        files=("new-1", "new-2"),
        rows=2,
        size_bytes=sum(file.length for file in plan().publication.content),
        marker_name="_SUCCESS",
        marker='{"revision": 2}',
        storage=context.storage,
        columns=None,
        scratch=str(disk.root / "work" / "scratch"),
        publication=plan().publication,
        owner="cli",
    )


def test_policy_that_ends_its_process_is_one_that_fails(disk: Disk) -> None:
    class Exiting:
        def commit(self, context: PolicyContext) -> None:
            raise SystemExit(0)

    disk.policies.insert(0, ("exit", Exiting()))

    with pytest.raises(PolicyFailed, match="SystemExit"):
        disk.commit()


def test_policy_that_fails_leaves_files_without_marker_and_is_asked_again(disk: Disk) -> None:
    watching = Watching(failures=1)
    disk.policies.insert(0, ("watch", watching))

    with pytest.raises(PolicyFailed, match=r"'orders'.*RuntimeError: the metastore is away"):
        disk.commit()
    assert not (disk.partition / "_SUCCESS").exists()
    disk.commit()

    assert disk.files() == AFTER
    assert watching.seen[0] == watching.seen[1]


def test_marker_written_by_somebody_else_meanwhile_is_refused(disk: Disk) -> None:
    class Meddling:
        def commit(self, context: PolicyContext) -> None:
            (disk.partition / "_SUCCESS").write_bytes(b"{}")

    disk.policies.insert(0, ("meddle", Meddling()))

    with pytest.raises(FileExistsAlready, match="_SUCCESS"):
        disk.commit()

    with contextlib.suppress(FileNotFoundError):
        assert (disk.partition / "_SUCCESS").read_bytes() == b"{}"


def test_commit_that_only_removes_leaves_an_empty_revision(disk: Disk) -> None:
    publication = replace(plan().publication, adds=(), content=())

    disk.commit(plan(publication=publication))

    assert sorted(item.name for item in disk.partition.iterdir()) == ["_SUCCESS"]


def test_old_files_stay_until_the_new_ones_are_found_whole(disk: Disk) -> None:
    class Losing(LocalStorage):
        def link_new(self, source: str, target: str) -> None:
            super().link_new(source, target)
            if target.endswith("dt=2026-02-01/new-2"):
                Path(target).unlink()

    with pytest.raises(StagedFileMissing):
        disk.commit(storage=Losing())

    assert (disk.partition / "old").exists()


KEPT = file("kept", b"kept")


@dataclass
class Apart(Disk):
    """A table in which revision 1 stands in a directory of its own, with a file that stays."""

    def __post_init__(self) -> None:
        super().__post_init__()
        (self.partition / "kept").write_bytes(b"kept")

    @property
    def coming(self) -> Path:
        return self.root / "table" / "dt=2026-02-01" / "_revisions" / "000002-ab"

    def places(self) -> Places:
        former = str(self.partition)
        return replace(super().places(), partition_root=str(self.coming), former_root=former)

    def plan(self) -> CommitPlan:
        made = plan()
        return replace(made, publication=replace(made.publication, content=(KEPT, *NEW)))

    def stands(self) -> dict[str, bytes]:
        """Give the directory that is being made."""
        return {item.name: item.read_bytes() for item in self.coming.iterdir()}

    def check_former(self) -> None:
        """Check that the revision before is as it was."""
        found = {it.name: it.read_bytes() for it in self.partition.iterdir() if it.is_file()}
        assert found == {"old": b"old", "kept": b"kept", "_SUCCESS": b'{"revision": 1}'}


@pytest.fixture
def apart(tmp_path: Path) -> Apart:
    return Apart(tmp_path)


WHOLE = {**REVISION_2, "kept": b"kept", "_SUCCESS": b'{"revision": 2}'}


def test_revision_with_its_own_directory_leaves_the_one_before_as_it_is(apart: Apart) -> None:
    apart.commit(apart.plan())

    assert apart.stands() == WHOLE
    apart.check_former()
    assert (apart.root / "work" / "retired" / "old").read_bytes() == b"old"
    assert not any(apart.staged.iterdir())


def test_marker_that_stands_is_not_retracted_when_its_commit_is_repeated(apart: Apart) -> None:
    apart.commit(apart.plan())
    before = (apart.coming / "_SUCCESS").stat()

    apart.commit(apart.plan())

    assert (apart.coming / "_SUCCESS").stat() == before
    assert apart.stands() == WHOLE


def test_marker_of_another_attempt_makes_way_in_the_directory_of_a_revision(apart: Apart) -> None:
    apart.coming.mkdir(parents=True)
    (apart.coming / "_SUCCESS").write_bytes(b"of a plan that was never prepared")

    apart.commit(apart.plan())

    assert apart.stands() == WHOLE


@pytest.mark.parametrize("name", ["kept", "new-1"])
def test_file_that_is_lost_leaves_no_directory_of_the_revision(apart: Apart, name: str) -> None:
    (apart.partition / name).unlink(missing_ok=True)
    (apart.staged / name).unlink(missing_ok=True)

    with pytest.raises(StagedFileMissing):
        apart.commit(apart.plan())

    assert not apart.coming.exists()


def test_directory_that_is_taken_back_is_gone_and_its_files_are_staged(apart: Apart) -> None:
    apart.commit(apart.plan())

    for _ in range(2):
        publisher = Publisher(LocalStorage(), apart.places(), ())
        publisher.take_back(apart.plan(), "cli", apart.steps)

        assert not apart.coming.exists()
        assert {it.name: it.read_bytes() for it in apart.staged.iterdir()} == REVISION_2
        apart.check_former()
    apart.commit(apart.plan())
    assert apart.stands() == WHOLE


def test_directory_to_which_readers_are_still_sent_is_not_taken_away(apart: Apart) -> None:
    apart.commit(apart.plan())

    def silent() -> None:
        raise MetastoreSilent(uri="thrift://metastore:9083", problem="timed out")

    publisher = Publisher(LocalStorage(), apart.places(), ())
    with pytest.raises(MetastoreSilent):
        publisher.take_back(apart.plan(), "cli", apart.steps, silent)

    assert apart.stands() == WHOLE


class MarkersLast(DyingCalls):
    """Name markers last, as a disk may."""

    def scan(self, path: str) -> list[DirectoryEntry]:
        return sorted(super().scan(path), key=lambda entry: entry.name == "_SUCCESS")


@pytest.mark.parametrize("verb", ["carry_out", "take_back"])
def test_process_that_dies_anywhere_leaves_no_marker_over_half_a_directory(
    tmp_path: Path, verb: str
) -> None:
    for left in range(100):
        apart = Apart(tmp_path / str(left))
        if verb == "take_back":
            apart.commit(apart.plan())
        storage = LocalStorage(calls=MarkersLast([left]))
        policies = [("success-file", SuccessFile())]
        publisher = Publisher(storage, apart.places(), policies)
        try:
            getattr(publisher, verb)(apart.plan(), "cli", apart.steps)
        except Killed:
            if (apart.coming / "_SUCCESS").exists():
                assert apart.stands() == WHOLE
            apart.check_former()
        else:
            break
        sound = Publisher(LocalStorage(), apart.places(), policies)
        getattr(sound, verb)(apart.plan(), "cli", apart.steps)
        assert apart.coming.exists() == (verb == "carry_out")
        if verb == "carry_out":
            assert apart.stands() == WHOLE
        apart.check_former()
    assert left > 5
