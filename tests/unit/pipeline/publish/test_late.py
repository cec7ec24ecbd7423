"""Late rows that do not count are put where they belong, whole, durably and under a claim."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.errors import FenceLost, StagedFileMissing
from tidegate.model.aside import Aside
from tidegate.model.ledger_rows import Claim
from tidegate.model.message import Contribution, EventTimes
from tidegate.model.partition import Partition
from tidegate.model.publication import PublishedFile
from tidegate.pipeline.publish.late import LateFiles, LateRows
from tidegate.pipeline.state.places import Roots
from tidegate.storage import LocalStorage, OsCalls

DAY = Partition((("dt", "2026-02-01"),))
PART = "part-0a-1b-0.csv"


@dataclass(frozen=True)
class DurableCalls(OsCalls):
    """System calls that know which directories have changed names that a power cut may undo."""

    unsynced: set[str] = field(default_factory=set, hash=False)

    def link(self, source: str, target: str) -> None:
        super().link(source, target)
        self.unsynced.add(posixpath.dirname(target))

    def unlink(self, path: str) -> None:
        super().unlink(path)
        self.unsynced.add(posixpath.dirname(path))

    def sync(self, descriptor: int) -> None:
        super().sync(descriptor)
        self.unsynced.discard(str(Path(f"/proc/self/fd/{descriptor}").readlink()))


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    (tmp_path / "work" / "staged").mkdir(parents=True)
    (tmp_path / "work" / "staged" / PART).write_text("late row")
    return Roots(str(tmp_path / "orders"), str(tmp_path / "work"), str(tmp_path / "late"))


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


@pytest.mark.parametrize("aside", [Aside.SIDE, Aside.LATE_REJECTED])
def test_names_of_late_rows_are_on_the_disk_when_they_are_put_and_when_they_are_taken_away(
    roots: Roots, aside: Aside
) -> None:
    calls = DurableCalls()

    put(roots, LocalStorage(calls), aside)
    assert list(published(roots).values()) == ["late row"]
    assert calls.unsynced == set()

    put(roots, LocalStorage(calls), None)
    assert published(roots) == {}
    assert calls.unsynced == set()


@pytest.mark.parametrize("aside", [Aside.SIDE, Aside.LATE_REJECTED])
def test_staged_file_that_was_cut_is_put_nowhere(roots: Roots, aside: Aside) -> None:
    with pytest.raises(StagedFileMissing):
        put(roots, LocalStorage(), aside, length=9)

    assert published(roots) == {}


def test_process_whose_claim_was_taken_over_puts_nothing(roots: Roots) -> None:
    def check_fence(_partition: Partition, claim: Claim) -> None:
        raise FenceLost(pipeline="orders", subject=str(DAY), held=claim.fence, found=9)

    ledger: Any = SimpleNamespace(partitions=SimpleNamespace(check_fence=check_fence))
    unused: Any = None
    late = LateRows(roots, ledger, LocalStorage(), contents(), unused, unused)

    with pytest.raises(FenceLost):
        late.file(DAY, [brought(Aside.LATE_REJECTED)], {}, Claim("run", 8), "run")

    assert published(roots) == {}
