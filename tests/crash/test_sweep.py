"""Sweeping the work directory at any moment of a pipeline's life takes nothing that it needs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from crash.faults import Stopper, stopping_storage
from crash.power import Disk, chance
from crash.scenario import APPENDS, InTurn, Life, Scenario, ending, in_turn, make_source
from crash.walk import SCENARIOS, differences
from tidegate.model.message import CommitMessage
from tidegate.model.run import Run

NOW = datetime(2026, 3, 1, tzinfo=UTC)
EVERY = 9
"""Changes between two sweeps."""


@pytest.mark.parametrize("offset", [0, 4])
@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS.keys())
def test_life_swept_between_its_changes_ends_as_an_undisturbed_one(
    tmp_path: Path, scenario: Scenario, offset: int
) -> None:
    source = scenario.make_source(tmp_path / "source")
    calm = Life(tmp_path / "root", *source, scenario)
    calm.prepare()
    calm.live()
    expected = ending(calm.root)
    calm.root.rename(tmp_path / "calm")

    swept = Life(tmp_path / "root", *source, scenario)
    swept.prepare()
    sweeper = swept.pipeline(None, scenario.variants[0], None)

    def sweep() -> None:
        if len(stopper.made) % EVERY == offset:
            garbage = sweeper.garbage(datetime.now(UTC), timedelta(0))
            taken.extend(item.path for item in garbage)
            sweeper.sweep(garbage)

    taken: list[str] = []
    stopper = Stopper(between=sweep)
    swept.live(stopping_storage(stopper))

    assert differences(expected, ending(swept.root)) == []
    assert taken


def believed_without_files(plan: Path) -> list[str]:
    """Name the staged files that a message of a plan names and that are not there."""
    return [
        part.staged
        for path in plan.glob("messages/*.json")
        for part in CommitMessage.from_text(path.read_bytes()).parts
        if not (plan / part.staged).exists()
    ]


def test_power_cut_in_a_sweep_leaves_no_message_without_its_files(tmp_path: Path) -> None:
    life = Life(tmp_path / "root", *make_source(tmp_path / "source"))
    life.prepare()
    replaced, effective = (life.pipeline(None, variant, None) for variant in APPENDS.variants)
    (planned,) = replaced.plan(Run("load", "cli"), NOW)
    replaced.stage(planned, InTurn())
    effective.load(Run("load", "cli"), NOW, in_turn)
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
