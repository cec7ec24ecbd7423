"""A write that done ones would pass over is named with its age (HUDI-W5)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from hudi_timelines import wrote
from tidegate.source.hudi.files import TableFiles
from tidegate.source.hudi.table.properties import TableProperties
from tidegate.source.hudi.timeline.hollow import hollow_write, spelled
from tidegate.source.hudi.timeline.loaded import LoadedTimeline

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.source.hudi.timeline.hollow import HollowWrite

NOW = datetime(2026, 1, 4, 12, tzinfo=UTC)
FIRST, SECOND, THIRD = (f"2026010{day}120000000" for day in (1, 2, 3))


def look(root: Path, *names: str, layout: int = 1) -> HollowWrite | None:
    folder = root / ".hoodie" / ("timeline" if layout == 2 else "")
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_text(json.dumps(wrote("a")))
    version = "6" if layout == 1 else "8"
    properties = {"hoodie.table.version": version, "hoodie.table.type": "MERGE_ON_READ"}
    found = LoadedTimeline(TableFiles(str(root)), TableProperties("lake", properties))
    return hollow_write(found, NOW, ZoneInfo("UTC"))


def test_pending_write_before_done_ones_is_named_with_age_and_what_waits(tmp_path: Path) -> None:
    found = look(tmp_path, f"{FIRST}.deltacommit.inflight", f"{SECOND}.deltacommit")

    assert found is not None
    assert (found.requested, found.age, found.later) == (FIRST, timedelta(days=3), 1)
    assert f"{FIRST} has been pending for 3 days, and 1 later write waits" in found.held_back
    assert "CALL run_clean" in found.held_back


def test_first_of_several_pending_writes_is_named(tmp_path: Path) -> None:
    names = (f"{SECOND}.deltacommit.requested", f"{FIRST}.deltacommit.requested")

    found = look(tmp_path, *names, f"{THIRD}.deltacommit")

    assert found is not None
    assert found.requested == FIRST


@pytest.mark.parametrize("kind", ["compaction.requested", "compaction.inflight", "clean.inflight"])
def test_pending_service_holds_nothing_back(kind: str, tmp_path: Path) -> None:
    assert look(tmp_path, f"{FIRST}.{kind}", f"{SECOND}.deltacommit") is None


def test_pending_replacement_that_plans_no_clustering_holds_back(tmp_path: Path) -> None:
    found = look(tmp_path, f"{FIRST}.replacecommit.requested", f"{SECOND}.deltacommit")

    assert found is not None


def test_write_at_work_after_all_done_ones_holds_nothing_back(tmp_path: Path) -> None:
    assert look(tmp_path, f"{FIRST}.deltacommit", f"{SECOND}.deltacommit.inflight") is None


def test_compaction_after_a_write_at_work_is_not_passed_over(tmp_path: Path) -> None:
    names = (f"{FIRST}.deltacommit.inflight", f"{SECOND}.compaction.requested")

    assert look(tmp_path, *names) is None


def test_pending_write_of_the_second_layout_holds_nothing_back(tmp_path: Path) -> None:
    """It completes after all that is done by now (HUDI-T13)."""
    names = (f"{FIRST}.deltacommit.inflight", f"{SECOND}_{SECOND}.deltacommit")

    assert look(tmp_path, *names, layout=2) is None


@pytest.mark.parametrize(
    ("age", "said"),
    [
        (timedelta(days=2, hours=5), "2 days"),
        (timedelta(days=1), "1 day"),
        (timedelta(minutes=59, seconds=59), "59 minutes"),
        (timedelta(seconds=59), "less than a minute"),
    ],
)
def test_age_is_in_the_largest_unit_that_it_fills(age: timedelta, said: str) -> None:
    assert spelled(age) == said
