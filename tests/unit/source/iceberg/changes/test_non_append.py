"""What passing over commits means is said in sentences, and refused where rows would be wrong."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.table.snapshots import Operation, Snapshot, Summary

from iceberg_states import entry_of
from tidegate.errors import NonAppendSnapshot
from tidegate.model.time_bounds import TimeBounds
from tidegate.source.iceberg.changes.appends import APPEND, EMPTY, REWRITE, Commit
from tidegate.source.iceberg.changes.non_append import is_passed_over, passing_over, refusal
from tidegate.source.iceberg.changes.passed_over import TakenAway

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.source.iceberg.manifests.entries import Entry

FILE, OTHER = entry_of(rows=1), entry_of(rows=4)


def _commit(kind: str, **counts: str) -> Commit:
    said = {name.replace("_", "-"): count for name, count in counts.items()}
    summary = Summary(Operation.OVERWRITE, **said)
    return Commit(Snapshot(snapshot_id=7, timestamp_ms=0, manifest_list="m", summary=summary), kind)


def _times(entry: Entry) -> TimeBounds:
    day = {FILE.path: 3, OTHER.path: 5}.get(entry.path)
    moment = datetime(2026, 1, day, 6, tzinfo=UTC) if day else None
    return TimeBounds(moment, moment)


def _rebuild(times: Sequence[TimeBounds]) -> str:
    return " ".join(["REBUILD", *(f"{it.smallest:%d}" if it.smallest else "ANY" for it in times)])


def _said(taken: TakenAway, *, skip: bool = True) -> tuple[str, ...]:
    commits = [_commit("overwrite", added_data_files="2", deleted_data_files="1")]
    return passing_over("lake.orders", commits, taken, _times, _rebuild, skip=skip)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(APPEND, False), (REWRITE, False), (EMPTY, False), ("overwrite", True), ("delete", True)],
)
def test_commit_that_changes_rows_is_passed_over(kind: str, expected: bool) -> None:
    """ICE-3.5."""
    assert is_passed_over(_commit(kind)) is expected


def test_removed_files_are_told_with_their_event_times_and_the_command() -> None:
    (sentence,) = _said(TakenAway(earlier=(FILE, OTHER)))

    assert "2 files (5 rows) of earlier windows were removed" in sentence
    assert "event times 2026-01-03 06:00 to 2026-01-05 06:00 UTC" in sentence


def test_event_times_are_not_told_where_one_file_does_not_say_its_own() -> None:
    (sentence,) = _said(TakenAway(earlier=(FILE, entry_of(rows=1))))

    assert "event times" not in sentence


def test_one_file_of_one_row_is_told_in_the_singular() -> None:
    (sentence,) = _said(TakenAway(earlier=(FILE,)))

    assert "1 file (1 row) of earlier windows was removed" in sentence


def test_deletes_and_new_files_are_told() -> None:
    deletes, brought = _said(TakenAway(deletes=(OTHER,), brought=(FILE,)))

    assert deletes.endswith("1 delete file (4 rows) came")
    assert "is not read: 1 file (1 row), event times 2026-01-03 06:00 to 2026" in brought


@pytest.mark.parametrize(
    ("taken", "days"),
    [
        (TakenAway(earlier=(FILE,), brought=(OTHER,)), "03 05"),
        (TakenAway(earlier=(FILE, entry_of(rows=1))), "03 ANY"),
        (TakenAway(deletes=(OTHER,), brought=(FILE,)), "ANY 03"),
    ],
    ids=["moved", "unknown", "deleted"],
)
def test_refused_commit_is_told_with_the_command_for_all_days(taken: TakenAway, days: str) -> None:
    with pytest.raises(NonAppendSnapshot) as refused:
        _said(taken, skip=False)

    said = refused.value.remedy
    assert f"after this load, REBUILD {days} reads the days concerned" in said
    assert said.count("REBUILD") == 1


def test_files_that_are_read_here_are_told_first() -> None:
    own, _ = _said(TakenAway(read=(OTHER,), brought=(FILE,)))

    assert own == "commits passed over took away 1 file (4 rows) that are read here"


def test_pipeline_that_does_not_skip_is_told_the_commits_and_what_skipping_means() -> None:
    with pytest.raises(NonAppendSnapshot) as refused:
        _said(TakenAway(brought=(FILE,)), skip=False)

    assert "7 (overwrite: 2 files added, 1 removed, 0 delete files)" in str(refused.value)
    assert "on_non_append: skip" in str(refused.value)
    assert "What came with commits passed over is not read" in str(refused.value)


def test_pipeline_whose_own_rows_were_taken_is_not_told_to_skip() -> None:
    with pytest.raises(NonAppendSnapshot) as refused:
        _said(TakenAway(read=(FILE,)), skip=False)

    assert "which `skip` therefore refuses" in str(refused.value)
    assert "Set `read.on_non_append: skip`" not in str(refused.value)


def test_commit_without_a_summary_has_unknown_counts() -> None:
    bare = Commit(Snapshot(snapshot_id=7, timestamp_ms=0, manifest_list="m"), "delete")
    found = refusal("lake.orders", [bare], TakenAway(read=(FILE,)))

    assert "7 (delete: ? files added, ? removed, ? delete files)" in str(found)


@pytest.mark.parametrize("part", ["earlier", "deletes", "brought"])
def test_read_is_refused_only_where_its_own_rows_were_taken(part: str) -> None:
    others: dict[str, Any] = {part: (FILE,)}

    assert refusal("lake.orders", [_commit("delete")], TakenAway(**others)) is None
    assert refusal("lake.orders", [_commit("delete")], TakenAway(read=(FILE,))) is not None


def test_of_many_commits_the_first_ones_are_named() -> None:
    many = [_commit("overwrite")] * 30

    with pytest.raises(NonAppendSnapshot) as refused:
        passing_over("lake.orders", many, TakenAway(), _times, _rebuild, skip=False)

    assert refused.value.snapshots.count("overwrite") == 10
    assert refused.value.snapshots.endswith("and 20 more")
