"""Sweeping the work directory at any moment of a pipeline's life takes nothing that it needs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from crash.faults import Stopper, stopping_storage
from crash.scenario import Life, Scenario, ending
from crash.walk import SCENARIOS, differences

if TYPE_CHECKING:
    from pathlib import Path

EVERY = 9
"""Changes between two sweeps."""


@pytest.mark.parametrize("offset", [0, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS.keys())
def test_life_swept_between_its_changes_ends_as_an_undisturbed_one(
    tmp_path: Path, scenario: Scenario, offset: int
) -> None:
    """PC-V33."""
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
