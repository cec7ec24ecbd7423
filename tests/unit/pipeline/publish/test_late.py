"""Late rows that do not count are put where they belong, whole, durably and under a claim."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from crash.faults import Stopper, stopping_storage
from crash.power import Disk, chance
from refusing import BlindCalls
from tidegate.errors import FenceLost, LateRootUnfit, PathEscapes, StagedFileMissing, StorageDenied
from tidegate.model.aside import Aside
from tidegate.model.ledger_rows import Claim
from tidegate.model.message import Contribution, EventTimes
from tidegate.model.partition import Partition
from tidegate.model.publication import PublishedFile
from tidegate.pipeline.publish.late import LateFiles, LateRows
from tidegate.pipeline.state.places import Roots
from tidegate.stage import layout
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from pathlib import Path

DAY = Partition((("dt", "2026-02-01"),))
PART = "part-0a-1b-0.csv"


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    root = tmp_path / "root"
    (root / "work" / "staged").mkdir(parents=True)
    (root / "work" / "staged" / PART).write_text("late row")
    return Roots(str(root / "orders"), str(root / "work"), str(root / "late"))


def brought(aside: Aside | None) -> Contribution:
    return Contribution(2, DAY, "0a", ("s",), 1, 8, EventTimes(), late=True, aside=aside)


def contents(length: int = 8) -> Any:
    file = PublishedFile(PART, length, "", 1, 2, "0a", f"staged/{PART}")
    return SimpleNamespace(parts_of=lambda _: [file])


def put(roots: Roots, storage: LocalStorage, aside: Aside | None, length: int = 8) -> None:
    LateFiles(roots, storage, contents(length)).put(DAY, [brought(aside)], {}, own=lambda: None)


def published(roots: Roots) -> dict[str, str]:
    """Give the part files of late rows below the late root and in quarantine, and their texts."""
    storage = LocalStorage()
    return {
        path: storage.read_bytes(f"{root}/{path}").decode()
        for root in (str(roots.late), f"{roots.work}/windows")
        for path in storage.list_files(root)
    }


def moved(roots: Roots, to: Path) -> Roots:
    """Give the roots as they are below another directory."""
    return replace(roots, work=str(to / "work"), late=str(to / "late"))


@pytest.mark.parametrize("aside", [Aside.SIDE, Aside.LATE_REJECTED])
def test_late_rows_that_were_put_or_taken_away_stay_so_after_a_power_cut(
    roots: Roots, tmp_path: Path, aside: Aside
) -> None:
    machine = Disk(tmp_path / "root", tmp_path / "kept")
    storage = stopping_storage(Stopper(disk=machine))

    put(roots, storage, aside)
    machine.leave(tmp_path / "after put", chance("lost", 0))
    put(roots, storage, None)
    machine.leave(tmp_path / "after taken", chance("doubled", 0))

    assert list(published(moved(roots, tmp_path / "after put")).values()) == ["late row"]
    assert published(moved(roots, tmp_path / "after taken")) == {}


@pytest.mark.parametrize("aside", [Aside.SIDE, Aside.LATE_REJECTED])
def test_staged_file_that_was_cut_is_put_nowhere(roots: Roots, aside: Aside) -> None:
    with pytest.raises(StagedFileMissing):
        put(roots, LocalStorage(), aside, length=9)

    assert published(roots) == {}


def blind_late_files(roots: Roots) -> LateFiles:
    """Give the files of late rows where the quarantine of the window cannot be looked at."""
    folder = layout.late_quarantine(layout.plan_root(roots.work, 2, "0a"), DAY)
    return LateFiles(roots, LocalStorage(BlindCalls(place=folder)), contents())


def test_quarantine_of_a_window_whose_rows_stand_is_not_looked_at_again(roots: Roots) -> None:
    """Else each publish would list a directory for every late window that the partition had."""
    late, stood = blind_late_files(roots), {"2": "0a"}

    late.put(DAY, [brought(None)], stood, own=lambda: None)

    assert late.are_filed(DAY, [brought(None)], stood)


@pytest.mark.parametrize("stood", [{}, {"2": "0b"}], ids=["none", "those of a former plan"])
def test_quarantine_is_looked_at_until_the_rows_stand(roots: Roots, stood: dict[str, str]) -> None:
    with pytest.raises(StorageDenied):
        blind_late_files(roots).put(DAY, [brought(None)], stood, own=lambda: None)


def test_late_root_that_is_not_its_own_is_left_as_it_is(roots: Roots) -> None:
    def refuse() -> None:
        raise LateRootUnfit(pipeline="orders", path=str(roots.late), problem="it is another's")

    late = LateFiles(roots, LocalStorage(), contents())
    late.put(DAY, [brought(None)], {}, own=refuse)
    with pytest.raises(LateRootUnfit):
        late.put(DAY, [brought(Aside.SIDE)], {}, own=refuse)

    assert published(roots) == {}


def test_late_rows_never_leave_their_root_by_a_link(roots: Roots, tmp_path: Path) -> None:
    """PC-P11."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "root" / "late").mkdir()
    (tmp_path / "root" / "late" / DAY.path).symlink_to(tmp_path / "elsewhere")

    with pytest.raises(PathEscapes):
        put(roots, LocalStorage(), Aside.SIDE)

    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_process_whose_claim_was_taken_over_puts_nothing(roots: Roots) -> None:
    def check_fence(_partition: Partition, claim: Claim) -> None:
        raise FenceLost(pipeline="orders", subject=str(DAY), held=claim.fence, found=9)

    ledger: Any = SimpleNamespace(partitions=SimpleNamespace(check_fence=check_fence))
    unused: Any = None
    late = LateRows(roots, ledger, LocalStorage(), contents(), unused, unused)

    with pytest.raises(FenceLost):
        late.file(DAY, [brought(Aside.LATE_REJECTED)], {}, Claim("run", 8), "run")

    assert published(roots) == {}
