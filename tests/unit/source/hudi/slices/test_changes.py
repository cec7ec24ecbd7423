"""The files of a window's writes are found write by write (HUDI-R7)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hudi_timelines import TIMES, order, overwrote, rewrote, with_files
from tidegate.errors import HudiChangesLost
from tidegate.source.hudi.files import TableFiles
from tidegate.source.hudi.slices.changes import Removed, WindowChanges, Written
from tidegate.source.hudi.timeline.loaded import LoadedTimeline

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Any


def changes(root: Path, writes: list[dict[str, Any]], window: Sequence[int]) -> WindowChanges:
    found = with_files(root, writes)
    return WindowChanges(TableFiles(str(root)), found, [order(place) for place in window])


def test_each_write_has_its_files_and_what_they_replaced(tmp_path: Path) -> None:
    writes = [rewrote(0, None), rewrote(1, 0), rewrote(2, 1, deletes=1)]

    found = [it for it in changes(tmp_path, writes, [0, 1, 2]) if isinstance(it, Written)]

    assert [(it.ordinal, it.instant, it.file.instant) for it in found] == [
        (number, TIMES[number], TIMES[number]) for number in range(3)
    ]
    assert [it.previous and it.previous.instant for it in found] == [None, None, TIMES[1]]


def test_groups_that_a_write_replaced_are_removed_as_they_stood_before(tmp_path: Path) -> None:
    writes = [rewrote(0, None), rewrote(1, 0), overwrote(2, "a"), rewrote(3, 2, group="new")]

    found = list(changes(tmp_path, writes, [1, 2, 3]))

    (removed,) = (it for it in found if isinstance(it, Removed))
    assert (removed.ordinal, removed.instant) == (1, TIMES[2])
    assert removed.slice.base is not None
    assert (removed.slice.group, removed.slice.base.instant) == ("a", TIMES[1])


@pytest.mark.parametrize("gone", [0, 1], ids=["the one before", "its own"])
def test_file_that_was_cleaned_is_an_error(gone: int, tmp_path: Path) -> None:
    found = changes(tmp_path, [rewrote(0, None), rewrote(1, 0, deletes=1)], [1])
    (tmp_path / "p" / f"a_0_{TIMES[gone]}.parquet").unlink()

    with pytest.raises(HudiChangesLost, match=TIMES[gone]):
        list(found)


@pytest.mark.parametrize(("retained", "is_lost"), [(2, False), (3, True)])
def test_removed_groups_need_files_that_a_clean_kept(
    tmp_path: Path, retained: int, is_lost: bool
) -> None:
    """The clean may have removed the newest file alone, and left an older one."""
    made = with_files(tmp_path, [rewrote(0, None), rewrote(1, 0), overwrote(2, "a")])
    content = json.dumps({"earliestCommitToRetain": TIMES[retained]})
    name = f"{TIMES[7]}_{TIMES[7]}.clean"
    (tmp_path / ".hoodie" / "timeline" / name).write_text(content)
    files = TableFiles(str(tmp_path))
    timeline = LoadedTimeline(files, made.table)
    found = WindowChanges(files, timeline, [order(2)])

    if is_lost:
        with pytest.raises(HudiChangesLost, match=TIMES[2]):
            list(found)
    else:
        assert [it.slice.group for it in found if isinstance(it, Removed)] == ["a"]
