"""The writes that are kept up to a checkpoint are counted by names of the timeline (HUDI-W14)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hudi_timelines import TIMES, order, timeline, wrote
from tidegate.source.hudi.files import TableFiles
from tidegate.source.hudi.timeline.kept import Kept, is_kept, kept_before
from tidegate.source.hudi.timeline.loaded import LoadedTimeline

if TYPE_CHECKING:
    from pathlib import Path


def cleaned(root: Path, writes: int, retained: str | None, archived: int = 0) -> LoadedTimeline:
    """A timeline of some writes, and a clean after them that retained those from one on."""
    made = timeline(root, [wrote("a")] * writes, [wrote("a")] * archived)
    if retained is not None:
        folder = root / ".hoodie" / "timeline"
        content = json.dumps({"earliestCommitToRetain": retained})
        (folder / f"{TIMES[7]}_{TIMES[7]}.clean").write_text(content)
    return LoadedTimeline(TableFiles(str(root)), made.table)


def test_writes_up_to_the_checkpoint_are_counted_from_what_the_clean_kept(tmp_path: Path) -> None:
    found = cleaned(tmp_path, 5, TIMES[1])

    assert kept_before(found, order(3)) == Kept(TIMES[1], 3)


@pytest.mark.parametrize(("checkpoint", "writes"), [(0, 0), (1, 0), (2, 1)])
def test_checkpoint_before_what_was_kept_has_none(
    checkpoint: int, writes: int, tmp_path: Path
) -> None:
    found = cleaned(tmp_path, 5, TIMES[2])

    assert kept_before(found, order(checkpoint)) == Kept(TIMES[2], writes)


def test_archived_writes_count_as_removed(tmp_path: Path) -> None:
    found = cleaned(tmp_path, 3, None, archived=2)

    assert kept_before(found, order(3)) == Kept(TIMES[2], 2)


def test_table_of_which_nothing_was_removed_has_no_count(tmp_path: Path) -> None:
    assert kept_before(cleaned(tmp_path, 3, None), order(2)) is None


def test_damaged_clean_is_no_count(tmp_path: Path) -> None:
    found = cleaned(tmp_path, 3, TIMES[1])
    (tmp_path / ".hoodie" / "timeline" / f"{TIMES[7]}_{TIMES[7]}.clean").write_bytes(b"Obj\x01no")

    assert kept_before(found, order(2)) is None


@pytest.mark.parametrize(("writes", "warns"), [(0, True), (2, True), (3, False)])
def test_warning_comes_below_the_threshold(writes: int, warns: bool) -> None:
    warning = Kept(TIMES[0], writes).warning(3)

    assert (warning is not None) is warns
    assert not warns or "hoodie.cleaner.commits.retained" in str(warning)


def test_threshold_of_zero_never_warns() -> None:
    assert Kept(TIMES[0], 0).warning(0) is None


def late(root: Path, retained: int | None, *, pending: bool = False) -> LoadedTimeline:
    """Writes that were done as requested, but for the second one, which was done after the third.

    And a clean after all of them.
    """
    made = timeline(root, [])
    folder = root / ".hoodie" / "timeline"
    for requested, completed in ((0, 0), (1, 4), (2, 3), (5, 5)):
        name = f"{TIMES[requested]}_{TIMES[completed]}.commit"
        (folder / name).write_text(json.dumps(wrote("a")))
    if retained is not None:
        name = ".clean.requested" if pending else f"_{TIMES[7]}.clean"
        content = json.dumps({"earliestCommitToRetain": TIMES[retained]})
        (folder / f"{TIMES[6]}{name}").write_text(content)
    return LoadedTimeline(TableFiles(str(root)), made.table)


FIRST, THIRD, SECOND, LAST = (
    (TIMES[completed], TIMES[requested])
    for requested, completed in ((0, 0), (2, 3), (1, 4), (5, 5))
)


@pytest.mark.parametrize("pending", [False, True], ids=["done", "pending"])
@pytest.mark.parametrize(
    ("retained", "kept"),
    [
        pytest.param(0, [FIRST, THIRD, SECOND, LAST], id="the first"),
        # The state after the third has files that the second replaced.
        pytest.param(2, [SECOND, LAST], id="passed by a late write"),
        pytest.param(1, [SECOND, LAST], id="the late write"),
        pytest.param(5, [LAST], id="the last"),
        pytest.param(6, [], id="none"),
    ],
)
def test_states_are_kept_from_the_retained_one_on_by_completion(
    retained: int, kept: list[tuple[str, str]], pending: bool, tmp_path: Path
) -> None:
    found = late(tmp_path, retained, pending=pending)

    assert [it for it in (FIRST, THIRD, SECOND, LAST) if is_kept(found, it)] == kept


def test_clean_that_counts_versions_of_files_keeps_the_newest_state(tmp_path: Path) -> None:
    found = late(tmp_path, None)
    clean = tmp_path / ".hoodie" / "timeline" / f"{TIMES[5]}_{TIMES[7]}.clean"
    clean.write_text(json.dumps({"earliestCommitToRetain": ""}))
    again = LoadedTimeline(TableFiles(str(tmp_path)), found.table)

    assert [is_kept(again, it) for it in (FIRST, THIRD, SECOND, LAST)] == [False] * 3 + [True]


def test_every_state_is_kept_without_a_clean(tmp_path: Path) -> None:
    assert is_kept(late(tmp_path, None), FIRST)


def test_late_write_counts_as_kept_after_the_retained_one(tmp_path: Path) -> None:
    found = late(tmp_path, 2)

    assert kept_before(found, LAST) == Kept(TIMES[2], 3)


def test_pending_clean_counts_as_one_that_is_done(tmp_path: Path) -> None:
    found = late(tmp_path, 2, pending=True)

    assert kept_before(found, THIRD) == Kept(TIMES[2], 1)
