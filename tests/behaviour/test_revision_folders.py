"""With `target.layout: revisions`, whoever was sent to a directory sees one whole revision.

Every command that changes a revision makes another directory, and none changes one that is marked.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow.dataset as ds
import pytest
from typer.testing import CliRunner

from behaviour.test_compaction import RULE
from behaviour.test_erase import everywhere
from behaviour.test_upsert import CHANGES, UPSERT, ChangingLake
from crash.promises import visible_below
from crash.scenario import ledger_content
from dying import Killed, deaths, each_death
from s3_servers import address_in_store
from small_lake import (
    DAY,
    NOW,
    SmallLake,
    day,
    load,
    local,
    look_again,
    publish,
    stamps,
    stand_as_before,
)
from tidegate import read_committed
from tidegate.cli.app import app
from tidegate.errors import (
    ConfigInvalid,
    PartitionNotThere,
    PipelineChanged,
    RevisionNotThere,
    RevisionsUnmarked,
)
from tidegate.model.finding import FindingKind
from tidegate.model.publication import Approval
from tidegate.model.run import Run
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.pipeline import Pipeline

FIRST = "dt=2026-02-01"
ADA = Approval(approved=True, by="ada", at=NOW, comment="doubled")
KEYS: dict[str, Any] = {
    "target": {"layout": "revisions"},
    "commit": {"trigger": "process-time"},
}
LATER = NOW + 900 * DAY


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallLake:
    made = SmallLake(tmp_path / "lake", keys=KEYS)
    made.found_by_name(monkeypatch)
    return made


def grown(lake: SmallLake, *rows: int, **keys: Any) -> Pipeline:
    """Publish a revision of the first day for each number of rows."""
    opened = lake.pipeline(**keys)
    for number in rows:
        lake.commit({1: number})
        load(opened)
        publish(opened)
    return opened


def folders(lake: SmallLake, partition: str = FIRST) -> list[Path]:
    """List the directories of a partition's revisions, in their order."""
    return sorted((lake.target / partition / "_revisions").iterdir())


def ids_in(folder: Path) -> list[int]:
    """Read a directory as an engine does that is sent there, and knows no marker."""
    found = ds.dataset(folder, format="parquet").to_table(columns=["id"])["id"].to_pylist()
    glob = duckdb.sql(f"select id from read_parquet('{folder}/*.parquet')").fetchall()
    assert sorted(found) == sorted(id for (id,) in glob)
    return sorted(found)


def ids(lake: SmallLake, **wanted: Any) -> list[int]:
    found = read_committed(lake.target, **wanted).to_table(columns=["id"])["id"].to_pylist()
    return sorted(found)


def check_whole(lake: SmallLake) -> None:
    """Check that every marked directory has exactly what its marker lists."""
    for marker in lake.target.rglob("_SUCCESS"):
        listed = {file["name"]: file["length"] for file in json.loads(marker.read_bytes())["files"]}
        stand = {item.name: item.stat().st_size for item in marker.parent.iterdir()}
        del stand["_SUCCESS"]
        assert stand == listed, marker


def check_restored(lake: SmallLake) -> None:
    """Check that a ledger that is made of the files knows what the lost one did."""
    opened = lake.pipeline()
    look_again(opened, NOW)
    before = ledger_content(lake.root)
    (lake.root / "ledger.db").unlink()
    opened = lake.pipeline()
    opened.restore_ledger()
    look_again(opened, NOW)
    assert ledger_content(lake.root) == before


def test_each_revision_is_whole_in_a_directory_that_no_later_one_changes(lake: SmallLake) -> None:
    grown(lake, 2)
    before = stamps(lake.target)
    grown(lake, 3)

    first, second = folders(lake)

    assert (ids_in(first), ids_in(second)) == ([1, 2], [1, 2, 3, 4, 5])
    assert ids(lake) == [1, 2, 3, 4, 5]
    after = stamps(lake.target)
    assert {name: after[name] for name in before} == before
    # Who lists the table sees nothing twice, and no file that could be of half a revision.
    assert visible_below_partitions(lake) == []
    check_whole(lake)
    assert list(lake.pipeline().findings()) == []
    check_restored(lake)


def visible_below_partitions(lake: SmallLake) -> list[Path]:
    """List what a reader sees who lists the table and leaves hidden names out."""
    return [
        path
        for path in visible_below(lake.target)
        if not any(part.startswith("_") for part in path.relative_to(lake.target).parts)
    ]


def test_overwritten_partition_is_replaced_beside_what_it_had(lake: SmallLake) -> None:
    lake.keys = {**KEYS, "target": {"layout": "revisions", "write": "overwrite"}}
    grown(lake, 2, 3)

    assert [*map(ids_in, folders(lake))] == [[1, 2], [3, 4, 5]]
    assert ids(lake) == [3, 4, 5]
    check_whole(lake)
    check_restored(lake)


def test_upserted_rows_are_merged_into_the_directory_of_the_next_revision(tmp_path: Path) -> None:
    target = {**UPSERT["target"], "layout": "revisions"}
    lake = ChangingLake(tmp_path / "lake", keys={**UPSERT, "target": target})
    opened = lake.pipeline(source=CHANGES)
    for rows in ({1: (1, 10), 2: (1, 20)}, {1: (1, 11), 3: (1, 30)}):
        lake.write(rows)
        load(opened)
        publish(opened)

    found = [
        sorted(map(tuple, duckdb.sql(f"select id, amount from '{it}/*.parquet'").fetchall()))
        for it in folders(lake)
    ]

    assert found == [[(1, 10), (2, 20)], [(1, 11), (2, 20), (3, 30)]]
    check_whole(lake)
    assert list(opened.findings()) == []


def test_undo_diff_and_reopen_find_the_rows_of_earlier_revisions(lake: SmallLake) -> None:
    opened = grown(lake, 2, 3)

    done = opened.undo(day(1), 2, ADA, "cli", NOW)
    shown = CliRunner().invoke(app, ["diff", "orders", FIRST, "--json"], catch_exceptions=False)
    undone = ids(lake)
    opened.reopen(day(1), NOW)
    publish(opened)

    assert (done.revision, undone, ids(lake)) == (3, [1, 2], [1, 2, 3, 4, 5])
    assert shown.exit_code == 0, shown.output
    assert len(folders(lake)) == 4
    check_whole(lake)
    assert list(opened.findings()) == []
    check_restored(lake)


def test_compaction_and_replay_make_directories_of_their_own(lake: SmallLake) -> None:
    opened = grown(lake, 2, 2, 2)

    assert opened.compact(day(1), RULE, "cli", NOW) is not None
    narrow = lake.pipeline(source={"read": {"filter": "id <> 2"}})
    narrow.finish_load(narrow.replay(1, Run("again", "cli"), NOW), NOW, local)
    publish(narrow)

    assert [len([*it.glob("part-*")]) for it in folders(lake)] == [1, 2, 3, 1, 3]
    assert [*map(ids_in, folders(lake)[-2:])] == [[1, 2, 3, 4, 5, 6], [1, 3, 4, 5, 6]]
    check_whole(lake)
    assert list(narrow.findings()) == []


def test_replay_that_finds_nothing_new_makes_no_directory(lake: SmallLake) -> None:
    opened = grown(lake, 2, 2)
    before = stamps(lake.target)

    opened.finish_load(opened.replay(1, Run("again", "cli"), NOW), NOW, local)
    publish(opened)

    assert stamps(lake.target) == before


def test_erased_rows_leave_the_directories_of_all_revisions(lake: SmallLake) -> None:
    opened = grown(lake, 2, 2, 2)
    assert len(folders(lake)) == 3

    erasure = opened.erasure("id in (3)", "ada", NOW)
    report = opened.erase(erasure, Run("erase", "cli"), ADA, local)

    assert report.left == ()
    assert everywhere(lake) == {1, 2, 4, 5, 6}
    # The first never had the row; those that had it are gone as a whole.
    assert [*map(ids_in, folders(lake))] == [[1, 2], [1, 2, 4, 5, 6]]
    assert [file.done for file in report.files if "/_revisions/000002-" in file.path] == [
        "deleted with the directory of revision 2"
    ]
    check_whole(lake)
    assert list(opened.findings()) == []


@pytest.mark.on_disk
def test_gc_removes_directories_beyond_the_newest_and_leaves_what_undo_needs(
    lake: SmallLake,
) -> None:
    opened = grown(lake, 1, 1, 1, 1)
    assert opened.garbage(NOW, timedelta(days=30)) == ()

    garbage = opened.garbage(LATER, timedelta(0))
    listed = {item.path for item in garbage}
    assert {str(it) for it in folders(lake)[:2]} <= listed
    assert not {str(it) for it in folders(lake)[2:]} & listed
    assert len(folders(lake)) == 4
    opened.sweep(garbage)

    assert [*map(ids_in, folders(lake))] == [[1, 2, 3], [1, 2, 3, 4]]
    check_whole(lake)
    assert opened.garbage(LATER, timedelta(0)) == ()
    opened.undo(day(1), 4, ADA, "cli", NOW)
    assert ids(lake) == [1, 2, 3]
    assert list(opened.findings()) == []


def test_gc_keeps_as_many_directories_as_the_pipeline_file_says(lake: SmallLake) -> None:
    opened = grown(lake, 1, 1, 1, target={"keep_revisions": 1})

    opened.sweep(opened.garbage(LATER, timedelta(0)))

    assert [*map(ids_in, folders(lake))] == [[1, 2, 3]]
    assert ids(lake) == [1, 2, 3]


@pytest.mark.on_disk
@each_death
def test_gc_killed_at_any_step_leaves_no_marker_over_missing_files(
    lake: SmallLake, tmp_path: Path, every: int
) -> None:
    grown(lake, 1, 1, 1)

    def sweep(storage: LocalStorage) -> None:
        opened = lake.pipeline(storage)
        opened.sweep(opened.garbage(LATER, timedelta(0)))

    for storage in deaths(lake, tmp_path / "copied", every):
        with contextlib.suppress(Killed):
            sweep(storage)
        check_whole(lake)
        sweep(LocalStorage())
        assert [*map(ids_in, folders(lake))] == [[1, 2], [1, 2, 3]]


def test_partition_and_revision_are_read_alone(lake: SmallLake) -> None:
    lake.commit({1: 2, 2: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    grown(lake, 3)

    # What is not asked for is not even listed.
    (lake.target / "dt=2026-02-02").chmod(0)
    try:
        only = ids(lake, partitions=[FIRST])
    finally:
        (lake.target / "dt=2026-02-02").chmod(0o755)

    assert only == [1, 2, 4, 5, 6]
    assert ids(lake, at_revision=1) == [1, 2, 3]
    assert ids(lake, at_revision={FIRST: 1}) == [1, 2, 3]
    assert ids(lake, partitions=[FIRST], at_revision=2) == [1, 2, 4, 5, 6]
    with pytest.raises(RevisionNotThere, match=r"expected revision 2 of dt=2026-02-02, found 1\."):
        ids(lake, at_revision=2)
    with pytest.raises(RevisionNotThere, match=rf"expected revision 3 of {FIRST}, found 1, 2\."):
        ids(lake, at_revision={FIRST: 3})
    with pytest.raises(PartitionNotThere, match="dt=2026-02-09"):
        ids(lake, partitions=["dt=2026-02-09"])
    with pytest.raises(PartitionNotThere, match="dt=2026-02-09"):
        ids(lake, at_revision={"dt=2026-02-09": 1})


@pytest.mark.follows("RevisionNotThere")
def test_revision_that_the_error_names_can_be_read(lake: SmallLake) -> None:
    opened = grown(lake, 1, 1, 1)
    opened.sweep(opened.garbage(LATER, timedelta(0)))
    with pytest.raises(RevisionNotThere) as refused:
        ids(lake, at_revision=1)

    named = str(refused.value.values["found"]).split(", ")

    assert named == ["2", "3"]
    assert [ids(lake, at_revision=int(number)) for number in named] == [[1, 2], [1, 2, 3]]


def test_table_without_partitions_has_its_revisions_below_its_root(lake: SmallLake) -> None:
    keys = {"target": {"partition_by": None}, "event_time": None}
    for rows in (2, 1):
        lake.commit({1: rows})
        load(lake.pipeline(**keys))
        publish(lake.pipeline(**keys))

    assert [*map(ids_in, folders(lake, "."))] == [[1, 2], [1, 2, 3]]
    assert ids(lake) == [1, 2, 3]
    assert ids(lake, at_revision=1) == [1, 2]
    assert list(lake.pipeline(**keys).findings()) == []


def test_reader_that_was_outrun_by_gc_looks_again(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = grown(lake, 1, target={"keep_revisions": 1})
    listed = LocalStorage.list_files
    looks: list[int] = []

    def outrun(storage: LocalStorage, root: str) -> list[str]:
        names = listed(storage, root)
        if root == str(lake.target) and not looks:
            looks.append(1)
            grown(lake, 2, target={"keep_revisions": 1})
            opened.sweep(opened.garbage(LATER, timedelta(0)))
        return names

    monkeypatch.setattr(LocalStorage, "list_files", outrun)

    assert ids(lake) == [1, 2, 3]


@pytest.mark.on_disk
@each_death
def test_commit_killed_at_any_step_is_finished_by_a_ledger_made_of_the_files(
    lake: SmallLake, tmp_path: Path, every: int
) -> None:
    grown(lake, 2)
    lake.commit({1: 2})
    load(lake.pipeline())

    for storage in deaths(lake, tmp_path / "copied", every):
        with contextlib.suppress(Killed):
            publish(lake.pipeline(storage))
        check_whole(lake)
        assert ids(lake) in ([1, 2], [1, 2, 3, 4])
        (lake.root / "ledger.db").unlink()
        opened = lake.pipeline()
        opened.restore_ledger()
        publish(opened)
        assert [*map(ids_in, folders(lake))] == [[1, 2], [1, 2, 3, 4]]
        check_whole(lake)
        assert list(opened.findings()) == []


@pytest.mark.on_disk
@each_death
def test_commit_whose_file_was_lost_half_way_is_taken_back_with_its_directory(
    lake: SmallLake, tmp_path: Path, every: int
) -> None:
    grown(lake, 2)
    lake.commit({1: 2})
    load(lake.pipeline())

    for storage in deaths(lake, tmp_path / "copied", every):
        with contextlib.suppress(Killed):
            publish(lake.pipeline(storage))
        if ids(lake) == [1, 2, 3, 4]:
            break
        staged = lake.work.glob("windows/000002/*/staged/**/*.parquet")
        stood = {path.name for path in folders(lake)[0].iterdir()}
        moved = {path.name for path in folders(lake)[-1].glob("part-*")} - stood
        (file,) = {path.name for path in staged} or moved
        for path in (lake.root / "published").rglob(file):
            path.unlink()
        opened = lake.pipeline()
        opened.finish_load(opened.replay(2, Run("again", "cli"), NOW), NOW, local)
        publish(opened)

        assert [*map(ids_in, folders(lake))] == [[1, 2], [1, 2, 3, 4]]
        check_whole(lake)
        assert list(opened.findings()) == []
    else:
        pytest.fail("no death came before the marker")


@pytest.mark.on_disk
def test_files_that_nobody_listed_are_found_in_and_beside_the_current_directory(
    lake: SmallLake,
) -> None:
    grown(lake, 1, 1)
    first, second = folders(lake)
    file = next(second.glob("part-*"))
    shutil.copy(file, second / "stranger.parquet")
    lost = second.with_name("000003-0123456789abcdef")
    lost.mkdir()
    shutil.copy(file, lost / file.name)

    found = list(lake.pipeline().inspect())

    assert {(item.kind, item.where) for item in found} == {
        (FindingKind.FILE_UNKNOWN, str(second / "stranger.parquet")),
        (FindingKind.FILE_UNKNOWN, str(lost / file.name)),
    }
    assert first.exists()


def test_marker_of_a_later_revision_than_the_ledger_knows_stops_a_commit(lake: SmallLake) -> None:
    grown(lake, 1)
    shutil.copy(lake.root / "ledger.db", lake.root / "older.db")
    shutil.copytree(lake.work, lake.root / "older-work")
    grown(lake, 1)
    stand_as_before(lake.root / "ledger.db", lake.root / "older.db")
    stand_as_before(lake.work, lake.root / "older-work")
    lake.commit({1: 1})
    opened = lake.pipeline()

    load(opened)
    (outcome,) = opened.publish_all("cli", NOW)

    assert f"found a marker of revision 2 in {FIRST}" in str(outcome.error)
    assert len(folders(lake)) == 2


def test_file_that_is_lost_in_the_directory_is_not_linked_into_the_next(lake: SmallLake) -> None:
    grown(lake, 1)
    (folder,) = folders(lake)
    next(folder.glob("part-*")).unlink()
    lake.commit({1: 1})
    opened = lake.pipeline()
    load(opened)

    (outcome,) = opened.publish_all("cli", NOW)

    assert f"read its partition again with `tidegate rebuild orders {FIRST}`" in str(outcome.error)
    assert folders(lake) == [folder]
    rebuilt = opened.rebuild([day(1)], Run("rebuild", "cli"), NOW)
    opened.finish_load(rebuilt, NOW, local)
    publish(opened)
    assert ids(lake) == ids_in(folders(lake)[-1]) == [1, 2]


def test_dropped_target_has_no_directory_left_whatever_the_layout_is_next(
    lake: SmallLake,
) -> None:
    grown(lake, 1, 1)
    lake.keys = {"commit": KEYS["commit"]}
    opened = lake.pipeline()
    with pytest.raises(PipelineChanged, match=r"target\.layout.*revisions.*in_place"):
        load(opened)

    opened.drop("cli", NOW)

    assert not (lake.target / FIRST).exists()
    load(opened)
    publish(opened)
    assert lake.ids() == {FIRST: [1, 2]}


def test_partition_that_a_retired_pipeline_left_in_directories_is_not_written_into(
    lake: SmallLake,
) -> None:
    opened = grown(lake, 1, 1)
    opened.retire("ada", "cli", NOW)
    lake.keys = {"commit": KEYS["commit"]}
    other = lake.pipeline(name="other")
    load(other)

    (outcome,) = other.publish_all("cli", NOW)

    assert "was published by 'orders', which was retired" in str(outcome.error)
    assert ids(lake) == [1, 2]


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"target": {"layout": "revision"}}, r"target\.layout.*did you mean 'revisions'"),
        (
            {"target": {"layout": "in-place", "keep_revisions": 3}},
            r"target\.keep_revisions.*belongs to `layout: revisions`",
        ),
        ({"target": {"keep_revisions": 0}}, r"target\.keep_revisions.*greater than 0"),
        ({"commit": {"policies": []}}, r"target\.layout.*needs markers"),
    ],
)
def test_layout_that_readers_could_not_follow_is_refused(
    lake: SmallLake, keys: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigInvalid, match=told):
        lake.pipeline(**keys)


def test_check_says_that_each_revision_has_a_directory(lake: SmallLake) -> None:
    lake.commit({1: 1})
    lake.file()

    checked = CliRunner().invoke(app, ["check", "orders"], env={"COLUMNS": "4000"})

    assert checked.exit_code == 0, checked.output
    assert "a directory for each revision" in " ".join(checked.output.split())


def test_plan_of_a_table_in_place_does_not_tell_the_layout(lake: SmallLake) -> None:
    lake.keys = {"commit": KEYS["commit"]}
    config = lake.pipeline().config
    assert "layout" not in config.resolved()["target"]
    assert not [key for key in config.identity() if "layout" in key]
    said = lake.pipeline(target={"layout": "revisions", "keep_revisions": 5}).config
    assert said.plan_inputs() == config.plan_inputs()


@pytest.fixture
def below(lake: SmallLake, tmp_path: Path) -> SmallLake:
    """A pipeline that reads by markers what the other one publishes."""
    made = SmallLake(tmp_path / "below", keys={"commit": {"trigger": "process-time"}})
    made.source = {
        "kind": "files",
        "path": address_in_store(lake.target, lake.root),
        "partition_by": {"dt": "date"},
        "require_marker": True,
    }
    made.keys["target"] = {"partition_by": {"dt": "dt"}}
    return made


def test_pipeline_that_reads_by_markers_takes_in_each_file_once_whatever_revision_has_it(
    lake: SmallLake, below: SmallLake
) -> None:
    opened = grown(lake, 2, target={"keep_revisions": 1})
    load(below.pipeline())
    publish(below.pipeline())
    grown(lake, 3, target={"keep_revisions": 1})
    opened.sweep(opened.garbage(LATER, timedelta(0)))
    assert len(folders(lake)) == 1

    load(below.pipeline())
    publish(below.pipeline())
    assert below.ids() == {FIRST: [1, 2, 3, 4, 5]}
    # The directory that the first window read has been removed; its file stands in another.
    again = below.pipeline(source={"read": {"filter": "id <> 2"}})
    again.finish_load(again.replay(1, Run("again", "cli"), NOW), NOW, local)
    publish(again)

    assert below.ids() == {FIRST: [1, 3, 4, 5]}


def test_revision_that_is_just_being_committed_is_not_read(
    lake: SmallLake, below: SmallLake
) -> None:
    grown(lake, 2, 1)
    (folders(lake)[-1] / "_SUCCESS").rename(lake.root / "marker")

    load(below.pipeline())
    publish(below.pipeline())
    assert below.ids() == {FIRST: [1, 2]}

    (lake.root / "marker").rename(folders(lake)[-1] / "_SUCCESS")
    load(below.pipeline())
    publish(below.pipeline())
    assert below.ids() == {FIRST: [1, 2, 3]}


@pytest.mark.follows("RevisionsUnmarked")
def test_revisions_are_not_read_as_if_there_were_nothing_without_markers(
    lake: SmallLake, below: SmallLake
) -> None:
    grown(lake, 2)
    del below.source["require_marker"]
    with pytest.raises(RevisionsUnmarked, match=r"Set `source\.require_marker: true`"):
        load(below.pipeline())

    below.source["require_marker"] = True
    load(below.pipeline())
    publish(below.pipeline())

    assert below.ids() == {FIRST: [1, 2]}
