"""What a window deleted is found in the files that stood before it (HUDI-R6)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hudi_timelines import END, TIMES, clustered, order, overwrote, rewrote, with_files
from tidegate.errors import HudiChangesLost
from tidegate.source.hudi.files import TableFiles
from tidegate.source.hudi.slices.deletes import WindowDeletes
from tidegate.source.hudi.slices.listing import FolderFiles
from tidegate.source.hudi.timeline.loaded import LoadedTimeline

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def deletes(
    root: Path, writes: list[dict[str, Any]], window: Sequence[int], start: int | None = None
) -> WindowDeletes:
    """The deletes of a window over writes whose files are all there."""
    found = with_files(root, writes)
    places = list(window)
    before = order(places[0] - 1 if start is None else start)
    folders = FolderFiles(TableFiles(str(root)))
    return WindowDeletes(folders, found, [order(place) for place in places], before, END)


def test_keys_before_are_those_of_the_file_before_the_first_write(tmp_path: Path) -> None:
    writes = [rewrote(0, None), rewrote(1, 0), rewrote(2, 1, deletes=1), rewrote(3, 2, deletes=2)]

    found = deletes(tmp_path, writes, [1, 2, 3]).rewritten()

    (rewritten,) = found.values()
    assert list(found) == [("p", "a")]
    assert (rewritten.previous.instant, rewritten.by) == (TIMES[0], TIMES[2])


@pytest.mark.parametrize(
    "writes",
    [
        pytest.param([rewrote(0, None), rewrote(1, 0)], id="nothing deleted"),
        pytest.param(
            [rewrote(0, None, group="b"), rewrote(1, None, deletes=1)], id="nothing before"
        ),
    ],
)
def test_files_that_tell_no_delete_are_not_read(
    writes: list[dict[str, Any]], tmp_path: Path
) -> None:
    assert deletes(tmp_path, writes, [1]).rewritten() == {}


def test_file_before_that_was_cleaned_is_an_error(tmp_path: Path) -> None:
    found = deletes(tmp_path, [rewrote(0, None), rewrote(1, 0, deletes=1)], [1])
    (tmp_path / "p" / f"a_0_{TIMES[0]}.parquet").unlink()

    with pytest.raises(HudiChangesLost, match=TIMES[0]):
        found.rewritten()


def test_file_of_a_task_that_failed_is_not_the_one_before(tmp_path: Path) -> None:
    found = deletes(tmp_path, [rewrote(0, None), rewrote(1, 0, deletes=1)], [1])
    (tmp_path / "p" / f"a_9_{TIMES[0]}.parquet").write_text("")

    (rewritten,) = found.rewritten().values()

    assert rewritten.previous.path == f"p/a_0_{TIMES[0]}.parquet"


def test_groups_that_were_overwritten_are_gone_as_they_stood_before(tmp_path: Path) -> None:
    writes = [rewrote(0, None), rewrote(1, None, group="b"), rewrote(2, 0), overwrote(3, "a", "b")]

    found = list(deletes(tmp_path, writes, [2, 3]).ended({("p", "new")}))

    named = [(it.slice.group, it.slice.base and it.slice.base.instant) for it in found]
    assert named == [("a", TIMES[0]), ("b", TIMES[1])]
    assert {it.removed_by for it in found} == {TIMES[3]}


def test_groups_that_the_window_made_and_removed_leave_nothing(tmp_path: Path) -> None:
    writes = [rewrote(0, None), rewrote(1, None, group="b"), overwrote(2, "b")]

    assert list(deletes(tmp_path, writes, [1, 2]).ended({("p", "a"), ("p", "new")})) == []


def test_group_that_was_clustered_is_read_as_after_its_last_write(tmp_path: Path) -> None:
    moved = clustered("a", "c")
    moved["partitionToWriteStats"]["p"][0]["path"] = f"p/c_0_{TIMES[3]}.parquet"
    writes = [rewrote(0, None), rewrote(1, 0), rewrote(2, 1, deletes=1), moved]

    (ended,) = deletes(tmp_path, writes, [1, 2]).ended({("p", "c")})

    assert ended.removed_by is None
    assert (ended.slice.group, ended.slice.base and ended.slice.base.instant) == ("a", TIMES[2])


def test_group_that_lost_no_row_before_it_was_clustered_is_not_read(tmp_path: Path) -> None:
    moved = clustered("a", "c")
    moved["partitionToWriteStats"]["p"][0]["path"] = f"p/c_0_{TIMES[2]}.parquet"
    writes = [rewrote(0, None), rewrote(1, 0), moved]

    assert list(deletes(tmp_path, writes, [1]).ended({("p", "c")})) == []


@pytest.mark.parametrize("gone", [0, 1])
def test_group_that_was_clustered_is_refused_without_its_last_file(
    tmp_path: Path, gone: int
) -> None:
    moved = clustered("a", "c")
    moved["partitionToWriteStats"]["p"][0]["path"] = f"p/c_0_{TIMES[2]}.parquet"
    found = deletes(tmp_path, [rewrote(0, None), rewrote(1, 0, deletes=1), moved], [1])
    for place in range(gone, 2):
        (tmp_path / "p" / f"a_0_{TIMES[place]}.parquet").unlink()

    with pytest.raises(HudiChangesLost, match=TIMES[1]):
        list(found.ended({("p", "c")}))


def test_rows_that_were_clustered_before_they_were_overwritten_are_gone(tmp_path: Path) -> None:
    moved = clustered("a", "c")
    moved["partitionToWriteStats"]["p"][0]["path"] = f"p/c_0_{TIMES[1]}.parquet"
    writes = [rewrote(0, None), moved, overwrote(2, "c")]

    (ended,) = deletes(tmp_path, writes, [1, 2]).ended({("p", "new")})

    assert (ended.slice.group, ended.removed_by) == ("a", TIMES[2])


def test_folder_is_listed_once_however_many_groups_were_clustered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And groups are read as after the last write to each of them."""
    moved = clustered("a", "c")
    moved["partitionToWriteStats"]["p"][0]["path"] = f"p/c_0_{TIMES[4]}.parquet"
    moved["partitionToReplaceFileIds"]["p"] = ["a", "b", "d"]
    both = rewrote(1, None, deletes=1, group="b")
    both["partitionToWriteStats"]["p"] += rewrote(1, 0, deletes=1)["partitionToWriteStats"]["p"]
    last = rewrote(3, None, deletes=1, group="d")
    writes = [rewrote(0, None), both, rewrote(2, 1), last, moved]
    found = deletes(tmp_path, writes, [1, 2, 3])
    listed: list[str] = []
    plain = TableFiles.folder
    monkeypatch.setattr(
        TableFiles, "folder", lambda self, path: listed.append(path) or plain(self, path)
    )

    ended = list(found.ended({("p", "c")}))

    assert sorted((it.slice.group, it.slice.base and it.slice.base.instant) for it in ended) == [
        ("a", TIMES[2]),
        ("b", TIMES[1]),
        ("d", TIMES[3]),
    ]
    assert [folder for folder in listed if not folder.startswith(".hoodie")] == ["p"]


def cleaned(root: Path, retained: int) -> None:
    content = json.dumps({"earliestCommitToRetain": TIMES[retained]})
    name = f"{TIMES[7]}_{TIMES[7]}.clean"
    (root / ".hoodie" / "timeline" / name).write_text(content)


@pytest.mark.parametrize(("retained", "is_lost"), [(0, False), (1, False), (2, True)])
def test_removed_groups_need_the_state_before_the_window(
    tmp_path: Path, retained: int, is_lost: bool
) -> None:
    writes = [rewrote(0, None), rewrote(1, 0), overwrote(2, "a")]
    made = with_files(tmp_path, writes)
    cleaned(tmp_path, retained)
    files = TableFiles(str(tmp_path))
    timeline = LoadedTimeline(files, made.table)
    found = WindowDeletes(FolderFiles(files), timeline, [order(2)], order(1), END)

    if is_lost:
        with pytest.raises(HudiChangesLost, match=TIMES[1]):
            list(found.ended({("p", "new")}))
    else:
        assert [it.removed_by for it in found.ended({("p", "new")})] == [TIMES[2]]


def moving(place: int, old: Sequence[str], *new: str) -> dict[str, Any]:
    """A clustering of groups into others."""
    raw = rewrote(place, None, group=new[0])
    stats = [rewrote(place, None, group=it)["partitionToWriteStats"]["p"][0] for it in new]
    raw["partitionToWriteStats"]["p"] = stats
    return {**raw, "operationType": "CLUSTER", "partitionToReplaceFileIds": {"p": list(old)}}


def test_rows_that_were_clustered_twice_before_they_were_overwritten_are_gone(
    tmp_path: Path,
) -> None:
    writes = [rewrote(0, None), moving(1, "a", "c"), moving(2, "c", "d"), overwrote(3, "d")]

    (ended,) = deletes(tmp_path, writes, [3], 0).ended({("p", "new")})

    assert (ended.slice.group, ended.removed_by) == ("a", TIMES[3])


def test_rows_clustered_into_two_groups_are_gone_since_the_later_one_was_dropped(
    tmp_path: Path,
) -> None:
    """A key of them that was written in between stands in its row, not in its delete."""
    writes = [
        rewrote(0, None),
        moving(1, "a", "c", "d"),
        overwrote(2, "d", group="x"),
        overwrote(3, "c", group="y"),
    ]

    (ended,) = deletes(tmp_path, writes, [2, 3], 0).ended({("p", "x"), ("p", "y")})

    assert (ended.slice.group, ended.removed_by) == ("a", TIMES[3])
