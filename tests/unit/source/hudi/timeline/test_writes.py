"""The writes that follow an instant, by completion, and after an upgrade by request (HUDI-W3)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from hudi_timelines import TIMES, clustered, order, timeline, wrote
from tidegate.errors import HudiHistoryLost, HudiInstantGone
from tidegate.model.instant import Instant
from tidegate.source.hudi.files import TableFiles
from tidegate.source.hudi.timeline.loaded import LoadedTimeline
from tidegate.source.hudi.timeline.writes import ends_following, writes_after, writes_following

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_writes_after_an_instant_leave_services_out(tmp_path: Path) -> None:
    found = timeline(tmp_path, [wrote("a"), clustered("a", "b"), wrote("c")])

    assert writes_after(found, order(0)) == (order(2),)


def test_writes_after_an_archived_instant_are_read_from_the_archive(tmp_path: Path) -> None:
    found = timeline(tmp_path, [wrote("c")], [wrote("a"), wrote("b")])

    assert writes_after(found, order(0)) == (order(1), order(2))


def test_instant_that_is_nowhere_was_rolled_back(tmp_path: Path) -> None:
    found = timeline(tmp_path, [wrote("a"), wrote("b")])

    with pytest.raises(HudiInstantGone):
        writes_after(found, order(5))


def test_instant_before_the_archive_is_lost(tmp_path: Path) -> None:
    found = timeline(tmp_path, [wrote("b")], [wrote("a")])

    with pytest.raises(HudiHistoryLost, match=TIMES[0]):
        writes_after(found, ("20250101000000000", "20250101000000000"))


def upgraded(root: Path, done: list[tuple[int, int]]) -> LoadedTimeline:
    """Writes by the places of their requested times and times of completion."""
    made = timeline(root, [])
    for requested, completed in done:
        name = f"{TIMES[requested]}_{TIMES[completed]}.commit"
        (root / ".hoodie" / "timeline" / name).write_text(json.dumps(wrote("a")))
    return LoadedTimeline(TableFiles(str(root)), made.table)


def test_instant_of_before_an_upgrade_is_followed_by_all_that_was_requested_later(
    tmp_path: Path,
) -> None:
    """What was requested later and done earlier was not in the window that ended there."""
    found = upgraded(tmp_path, [(0, 1), (1, 5), (2, 3), (6, 7)])

    def following(text: str) -> list[str]:
        return [requested for _, requested in writes_following(found, Instant(text, NOW))]

    assert following(TIMES[1]) == [TIMES[2], TIMES[6]]
    assert following(f"{TIMES[1]}_{TIMES[5]}") == [TIMES[6]]


def test_first_window_after_an_upgrade_ends_after_all_that_was_read(tmp_path: Path) -> None:
    """Ending at the write that was done earlier would bring the one after it again."""
    found = upgraded(tmp_path, [(0, 6), (1, 5), (2, 3), (4, 7)])

    ends = ends_following(found, Instant(TIMES[1], NOW))

    assert ends == ((TIMES[6], TIMES[0]), (TIMES[7], TIMES[4]))


def test_windows_after_an_upgrade_in_order_end_at_each_write(tmp_path: Path) -> None:
    found = upgraded(tmp_path, [(0, 1), (2, 3), (4, 5)])

    ends = ends_following(found, Instant(TIMES[0], NOW))

    assert [requested for _, requested in ends] == [TIMES[2], TIMES[4]]


def test_archived_writes_follow_a_checkpoint_that_a_savepoint_holds(tmp_path: Path) -> None:
    """It is still on the timeline, and those after it are not."""
    made = timeline(tmp_path, [wrote("d")], [wrote("a"), wrote("b"), wrote("c")])
    folder = tmp_path / ".hoodie" / "timeline"
    (folder / f"{TIMES[0]}_{TIMES[0]}.commit").write_text(json.dumps(wrote("a")))
    (folder / f"{TIMES[0]}_{TIMES[4]}.savepoint").write_text("")
    found = LoadedTimeline(TableFiles(str(tmp_path)), made.table)

    assert writes_after(found, order(0)) == (order(1), order(2), order(3))
