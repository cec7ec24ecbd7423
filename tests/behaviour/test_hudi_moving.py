"""A Hudi table whose timeline is archived while a load looks at it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from small_hudi import Command, typed
from tidegate.source.hudi.files import TableFiles
from walked_hudi import WalkedLake

if TYPE_CHECKING:
    from pathlib import Path

TIMELINE = ".hoodie/timeline"
BEFORE, AFTER = 10, 11
"""The archiver takes most writes out of the timeline between these steps of the walk."""


@pytest.fixture
def tidegate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    return typed(tmp_path / "root", monkeypatch)


def move_after_listing(lake: WalkedLake, step: int, patch: pytest.MonkeyPatch) -> None:
    """Let the table go on right after its timeline was listed for the first time."""
    list_folder = TableFiles.folder

    def moving(files: TableFiles, below: str) -> Any:
        found = list_folder(files, below)
        if below == TIMELINE:
            patch.setattr(TableFiles, "folder", list_folder)
            lake.table.stand_after(step)
        return found

    patch.setattr(TableFiles, "folder", moving)


@pytest.mark.follows("HudiTimelineMoved")
@pytest.mark.parametrize("mode", ["rebuild_partitions", "with_deletes"])
def test_timeline_that_is_archived_after_it_was_listed_is_listed_anew_by_the_next_run(
    mode: str, tmp_path: Path, tidegate: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = WalkedLake(tmp_path, mode)
    lake.take(6)
    lake.table.stand_after(BEFORE)
    move_after_listing(lake, AFTER, monkeypatch)

    assert "HudiTimelineMoved" in tidegate("tidegate load PIPELINE", 1)
    tidegate("tidegate load PIPELINE")
    tidegate("tidegate publish PIPELINE")

    assert lake.rows == lake.rows_after(AFTER)
