"""Power cuts at moments that the crash walk does not come to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from crash.faults import Stopper, stopping_storage
from crash.power import Disk, chance
from crash.scenario import APPENDS, InTurn, Life, in_turn, make_source
from tidegate.model.message import CommitMessage
from tidegate.model.run import Run
from tidegate.storage import LocalStorage

NOW = datetime(2026, 3, 1, tzinfo=UTC)
RUN = Run("load", "cli")


class Forgetful(LocalStorage):
    """A process that dies before the names of its messages are on the disk."""

    def sync(self, path: str) -> None:
        """Force something else to the disk."""
        if not path.endswith("/messages"):
            super().sync(path)


@pytest.fixture
def life(tmp_path: Path) -> Life:
    life = Life(tmp_path / "root", *make_source(tmp_path / "source"))
    life.prepare()
    return life


def test_window_is_sealed_over_messages_that_stand_whoever_wrote_them(
    tmp_path: Path, life: Life
) -> None:
    disk = Disk(life.root, tmp_path / "kept")
    storage = stopping_storage(Stopper(disk=disk))
    pipeline = life.pipeline(storage, APPENDS.variants[0], None)
    (planned,) = pipeline.plan(RUN, NOW)
    messages = Path(planned.uri).relative_to(life.root) / "messages"
    life.pipeline(Forgetful(storage.calls), APPENDS.variants[0], None).stage(planned, InTurn())

    pipeline.announce([planned], NOW)

    disk.leave(tmp_path / "left", chance("lost", 0))
    left, written = (
        {item.name for item in (root / messages).iterdir()}
        for root in (tmp_path / "left", life.root)
    )
    assert left == written
    assert written


def believed_without_files(plan: Path) -> list[str]:
    """Name the staged files that a message of a plan names and that are not there."""
    return [
        part.staged
        for path in plan.glob("messages/*.json")
        for part in CommitMessage.from_text(path.read_bytes()).staged.parts
        if not (plan / part.staged).exists()
    ]


def test_power_cut_in_a_sweep_leaves_no_message_without_its_files(
    tmp_path: Path, life: Life
) -> None:
    replaced, effective = (life.pipeline(None, variant, None) for variant in APPENDS.variants)
    (planned,) = replaced.plan(RUN, NOW)
    replaced.stage(planned, InTurn())
    effective.load(RUN, NOW, in_turn)
    plan = Path(planned.uri).relative_to(life.root)
    disk = Disk(life.root, tmp_path / "kept")
    wrong: list[str] = []

    def look() -> None:
        number = len(stopper.made)
        for seed in range(4):
            left = tmp_path / f"left {number} {seed}"
            disk.leave(left, chance("mixed", 100 * number + seed))
            wrong.extend(f"before {number}: {item}" for item in believed_without_files(left / plan))

    stopper = Stopper(between=look, disk=disk)
    sweeper = life.pipeline(stopping_storage(stopper), APPENDS.variants[1], None)
    garbage = sweeper.garbage(datetime.now(UTC), timedelta(0))
    sweeper.sweep(garbage)

    assert {Path(item.path).parent.name for item in garbage} >= {"messages", "dt=2026-02-01"}
    assert wrong == []
