"""How the plan of a sealed window differs from the one that it would have now."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from small_lake import NOW, SmallLake, interval, load
from tidegate.model.run import Run

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

RUN = Run("run", "cli", interval(1))


def shown(lake: SmallLake, **keys: Any) -> str | None:
    """Preview the only window of a lake."""
    (found,) = lake.pipeline(**keys).looking().preview(RUN, NOW).replays
    return found.differs


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    lake = SmallLake(tmp_path / "lake")
    lake.commit({1: 2})
    load(lake.pipeline(), interval(1))
    return lake


def plan_file(lake: SmallLake) -> Path:
    (found,) = lake.work.glob("windows/*/*/plan.json")
    return found


def test_window_with_the_same_plan_differs_in_nothing(lake: SmallLake) -> None:
    assert shown(lake) is None
    assert shown(lake, commit={"delay": "1h"}) is None


def test_each_section_that_decides_the_plan_is_named(lake: SmallLake) -> None:
    differs = shown(lake, timezone="Europe/Berlin", event_time={"column": "at", "unit": "ms"})

    assert differs == "`timezone`, `event_time` changed in the pipeline file"


def test_library_of_another_version_is_named(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("replaying", "scanning"):
        name = f"tidegate.pipeline.load.{module}.library_fingerprint"
        monkeypatch.setattr(name, lambda: {"pyarrow": "999", "polars": "1"})

    differs = shown(lake)

    assert differs is not None
    assert "now it is 999" in differs


def test_window_whose_plan_is_gone_says_so(lake: SmallLake) -> None:
    plan_file(lake).unlink()

    assert shown(lake, timezone="Europe/Berlin") == "the plan that it was loaded with is gone"


def test_plan_of_a_version_with_other_keys_differs(lake: SmallLake) -> None:
    path = plan_file(lake)
    said = json.loads(path.read_text())
    said["config"]["unheard_of"] = 1
    path.write_text(json.dumps(said))

    differs = shown(lake, timezone="Europe/Berlin")

    assert differs is not None
    assert "`timezone`" in differs
