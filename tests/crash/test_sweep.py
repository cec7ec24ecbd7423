"""Sweeping the work directory at any moment of a pipeline's life takes nothing that it needs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from crash.faults import Stopper, stopping_storage
from crash.scenario import Life, Scenario, ending
from crash.walk import SCENARIOS, differences
from tidegate import read_committed

if TYPE_CHECKING:
    from pathlib import Path

EVERY = 9
"""Changes between two sweeps."""
ON_DISK = {
    name: lived for name, lived in SCENARIOS.items() if not lived.in_store and not lived.is_listed
}
_KEPT = 2
"""Revisions of a partition whose directories a sweep leaves, where each has one."""


def of_kept(root: Path) -> dict[str, Any]:
    """Give an ending without the directories of earlier revisions, which a sweep takes."""
    found, published = ending(root), root / "published" / "orders"
    taken = [
        str(folder.relative_to(published))
        for all_of_them in published.rglob("_revisions")
        for folder in sorted(all_of_them.iterdir(), reverse=True)[_KEPT:]
    ]
    if (published / "dt=2026-02-01" / "_revisions").exists():
        # Both are those of all directories, some of which are gone in one of two lives.
        rows = read_committed(published).to_table().to_pylist()
        found["rows"] = found["visible rows"] = sorted(map(str, rows))
    for kind in ("files", "markers"):
        found[kind] = {
            name: content
            for name, content in found[kind].items()
            if not name.startswith(tuple(taken))
        }
    return found


@pytest.mark.parametrize("offset", [0, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("scenario", ON_DISK.values(), ids=ON_DISK.keys())
def test_life_swept_between_its_changes_ends_as_an_undisturbed_one(
    tmp_path: Path, scenario: Scenario, offset: int
) -> None:
    """PC-V33."""
    source = scenario.make_source(tmp_path / "source")
    calm = Life(tmp_path / "root", *source, scenario)
    calm.prepare()
    calm.live()
    expected = of_kept(calm.root)
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

    assert differences(expected, of_kept(swept.root)) == []
    assert taken
