"""What commands beside load and publish do to an Iceberg table, which stays true after each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from dying import Killed
from lake_target import LakeToLake
from small_lake import NOW, day, decide, load, local, publish
from tidegate import read_committed
from tidegate.cli.app import app
from tidegate.errors import (
    PipelineRetired,
    PublishedInCatalog,
    RevisionFileGone,
    TableCatalogSilent,
)
from tidegate.metastore.iceberg.snapshots import TableCommits
from tidegate.model.held_branch import held_branch
from tidegate.model.partition import Partition
from tidegate.model.publication import Approval
from tidegate.model.run import Run
from tidegate.pipeline.upkeep.erasing.held import HeldRows
from tidegate.target.compaction import CompactionRule

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.model.erasure import ErasureReport

FIRST, SECOND = "2026-02-01", "2026-02-02"
ADA = Approval(approved=True, by="ada", at=NOW, comment="doubled")
APPROVED: dict[str, Any] = {"commit": {"require": ["approval"]}}
CHANGES: dict[str, Any] = {"source": {"read": {"mode": "changelog"}}}


@pytest.fixture
def lake(tmp_path: Path) -> LakeToLake:
    return LakeToLake(tmp_path / "lake")


def published(lake: LakeToLake, *rows: int, **keys: Any) -> list[list[int]]:
    """Publish a revision of the first day for each number of rows; the ids of each."""
    found = []
    for number in rows:
        ids = lake.commit({1: number, 2: 1})
        load(lake.pipeline(**keys))
        publish(lake.pipeline(**keys))
        found.append(ids[:number])
    return found


def is_true(lake: LakeToLake, **keys: Any) -> bool:
    return list(lake.pipeline(**keys).findings()) == []


def test_upsert_replaces_rows_by_key(lake: LakeToLake) -> None:
    target = {"target": {"write": "upsert", "keys": ["id"], "keys_stay": True}}
    (ids,) = published(lake, 3, **CHANGES, **target)
    lake.change({ids[0]: 77})
    load(lake.pipeline(**CHANGES, **target))

    publish(lake.pipeline(**CHANGES, **target))

    rows = lake.shop.scan(selected_fields=("id", "amount", "dt")).to_arrow().to_pylist()
    amounts = {row["id"]: row["amount"] for row in rows if row["dt"] == FIRST}
    assert amounts == {ids[0]: 77, ids[1]: 1, ids[2]: 1}
    assert is_true(lake, **CHANGES, **target)


def test_undo_brings_the_files_before_back_into_the_table(lake: LakeToLake) -> None:
    first, second = published(lake, 3, 2)
    assert lake.rows()[FIRST] == [*first, *second]

    lake.pipeline().undo(day(1), 2, ADA, "cli", NOW)

    assert lake.rows()[FIRST] == first
    assert is_true(lake)
    lake.pipeline().reopen(day(1), NOW)
    publish(lake.pipeline())
    assert lake.rows()[FIRST] == [*first, *second]
    assert is_true(lake)


def test_compaction_joins_files_and_leaves_rows(lake: LakeToLake) -> None:
    first, second = published(lake, 3, 2)
    rule = CompactionRule(small_file=1 << 20, target_size=128 << 20)

    made = lake.pipeline().compact(day(1), rule, "cli", NOW)

    assert made is not None
    assert lake.rows()[FIRST] == [*first, *second]
    paths = [it.file.file_path for it in lake.shop.scan().plan_files()]
    assert len([path for path in paths if FIRST in path]) == 1
    assert is_true(lake)


def test_diff_reads_revisions_whose_files_stay(lake: LakeToLake) -> None:
    lake.keys["target"] |= {"write": "overwrite"}
    published(lake, 3, 2)

    found = lake.pipeline().difference(day(1), 1, 2).found

    assert found is not None
    assert (found.added, found.removed) == (2, 3)


def test_replay_and_rebuild_publish_the_rows_once(lake: LakeToLake) -> None:
    first, second = published(lake, 3, 2)
    other = {"target": {"rolling": {"file_size": "64KiB"}}}
    pipeline = lake.pipeline(**other)

    pipeline.finish_load(pipeline.replay(1, Run("again", "cli"), NOW), NOW, local)
    publish(lake.pipeline(**other))

    assert lake.rows()[FIRST] == [*first, *second]
    assert is_true(lake, **other)


def test_erased_rows_leave_the_table_and_the_command_names_older_snapshots(
    lake: LakeToLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first,) = published(lake, 3)
    lake.found_by_name(monkeypatch)

    done = CliRunner().invoke(app, ["erase", "orders", "--where", f"id = {first[0]}", "--yes"])

    said = " ".join(done.output.split())
    assert done.exit_code == 0, said
    assert lake.rows()[FIRST] == first[1:]
    assert "Older snapshots of shop.orders keep the files as they were published" in said
    assert is_true(lake)


def erased(lake: LakeToLake, where: str | None, **keys: Any) -> ErasureReport:
    """Erase rows, or all that were to be erased once more."""
    opened = lake.pipeline(**keys)
    erasure = None if where is None else opened.erasure(where, "ada", NOW)
    return opened.erase(erasure, Run("erase", "cli"), ADA, local)


def held(lake: LakeToLake) -> list[str]:
    """Return the days that stand on branches of their own."""
    return sorted(name.partition("dt=")[2] for name in lake.shop.metadata.refs if name != "main")


@pytest.mark.on_disk
@pytest.mark.parametrize("rest", [0, 2], ids=["all rows", "some rows"])
def test_branch_of_a_held_revision_with_erased_rows_is_dropped(lake: LakeToLake, rest: int) -> None:
    lake.commit({1: 1 + rest, 2: 1})
    load(lake.pipeline(**APPROVED))
    publish(lake.pipeline(**APPROVED))
    assert held(lake) == [FIRST, SECOND]

    report = erased(lake, "id = 1", **APPROVED)

    assert report.left == ()
    assert held(lake) == [SECOND]
    told = [file for file in report.files if held_branch(day(1)) in file.done]
    assert [(file.rows, file.done) for file in told] == [
        (1, f"the branch tidegate-held/dt={FIRST} was dropped")
    ]
    publish(lake.pipeline(**APPROVED))
    assert lake.rows(held_branch(day(1))) == ({FIRST: [2, 3]} if rest else {})


@pytest.mark.on_disk
def test_erasure_that_died_before_the_branch_was_dropped_goes_on(
    lake: LakeToLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.commit({1: 2, 2: 1})
    load(lake.pipeline(**APPROVED))
    publish(lake.pipeline(**APPROVED))
    with monkeypatch.context() as dying:
        dying.setattr(HeldRows, "erase", _die)
        with pytest.raises(Killed):
            erased(lake, "id = 1", **APPROVED)
    assert lake.rows(held_branch(day(1))) == {FIRST: [1, 2]}

    assert erased(lake, None, **APPROVED).left == ()

    assert held(lake) == [SECOND]


def _die(*_: Any) -> Any:
    raise Killed


@pytest.mark.on_disk
def test_branch_is_left_and_told_while_the_catalog_is_silent(
    lake: LakeToLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.commit({1: 2, 2: 1})
    load(lake.pipeline(**APPROVED))
    publish(lake.pipeline(**APPROVED))
    with monkeypatch.context() as silent:
        silent.setattr(TableCommits, "held_files", _silent)
        report = erased(lake, "id = 1", **APPROVED)
    assert [file.path for file in report.left] == ["branches of shop.orders"]

    assert erased(lake, None, **APPROVED).left == ()

    assert held(lake) == [SECOND]


def _silent(*_: Any) -> Any:
    raise TableCatalogSilent(table="lake.shop.orders", problem="no route")


@pytest.mark.on_disk
def test_branch_of_another_partition_that_began_before_the_erasure_is_dropped(
    lake: LakeToLake,
) -> None:
    published(lake, 2)
    lake.commit({2: 1, 3: 1})
    load(lake.pipeline(**APPROVED))
    publish(lake.pipeline(**APPROVED))
    other = held_branch(day(2))
    assert lake.rows(other) == {FIRST: [1, 2], SECOND: [3, 4]}

    assert erased(lake, "id = 1", **APPROVED).left == ()

    assert other not in lake.shop.metadata.refs
    lake.pipeline(**APPROVED).reopen(day(2), NOW)
    publish(lake.pipeline(**APPROVED))
    assert lake.rows(other) == {FIRST: [2], SECOND: [3, 4]}
    decide(lake.pipeline(**APPROVED), day(2))
    publish(lake.pipeline(**APPROVED))
    assert lake.rows() == {FIRST: [2], SECOND: [3, 4]}


@pytest.mark.on_disk
def test_branch_without_erased_rows_stays(lake: LakeToLake) -> None:
    lake.commit({1: 2, 2: 2, 3: 1})
    load(lake.pipeline(**APPROVED))
    publish(lake.pipeline(**APPROVED))

    assert erased(lake, "id = 1", **APPROVED).left == ()

    assert held(lake) == [SECOND, "2026-02-03"]


def test_reset_takes_away_what_is_held_until_it_is_read_again(lake: LakeToLake) -> None:
    ids = lake.commit({1: 2, 2: 1})
    load(lake.pipeline(**APPROVED))
    publish(lake.pipeline(**APPROVED))
    assert held(lake) == [FIRST, SECOND]

    opened = lake.pipeline(**APPROVED)
    opened.finish_load(opened.reset(Run("again", "cli"), NOW), NOW, local)

    assert held(lake) == []
    publish(lake.pipeline(**APPROVED))
    assert lake.rows(held_branch(day(1))) == {FIRST: ids[:2]}


def test_file_whose_rows_are_all_erased_is_no_part_of_the_table(lake: LakeToLake) -> None:
    first = lake.commit({1: 1, 2: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    second = lake.commit({1: 2})
    load(lake.pipeline())
    publish(lake.pipeline())
    opened = lake.pipeline()

    report = opened.erase(
        opened.erasure(f"id = {first[0]}", "ada", NOW), Run("erase", "cli"), ADA, local
    )

    assert report.left == ()
    assert lake.rows() == {FIRST: second}
    assert list(lake.pipeline().findings()) == []
    third = lake.commit({1: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    assert lake.rows() == {FIRST: [*second, *third]}
    assert list(lake.pipeline().findings()) == []


def test_garbage_is_deleted_from_the_work_directory_only(lake: LakeToLake) -> None:
    lake.keys["target"] |= {"write": "overwrite"}
    published(lake, 3, 2)
    before = {path for path in lake.target.rglob("*") if path.is_file()}
    first = lake.shop.snapshots()[0].snapshot_id

    sweeper = lake.pipeline()
    sweeper.sweep(sweeper.garbage(datetime.now(UTC) + timedelta(days=900), timedelta(0)))

    assert {path for path in lake.target.rglob("*") if path.is_file()} == before
    assert lake.shop.scan(snapshot_id=first).to_arrow().num_rows == 3
    assert is_true(lake)


def test_reset_takes_the_rows_out_of_the_table_and_keeps_what_snapshots_name(
    lake: LakeToLake,
) -> None:
    (first,) = published(lake, 3)
    before = lake.shop.metadata.refs["main"].snapshot_id

    lake.pipeline().drop("cli", NOW)

    assert lake.rows() == {}
    assert lake.shop.scan(snapshot_id=before).to_arrow().num_rows == 3
    load(lake.pipeline())
    publish(lake.pipeline())
    assert lake.rows()[FIRST] == first
    assert is_true(lake)


def test_retired_pipeline_leaves_its_table_to_a_successor(lake: LakeToLake) -> None:
    (first,) = published(lake, 3)
    holding = {"rows": [{"name": "few", "where": "id < 4", "on_failure": "hold"}]}
    lake.commit({1: 1, 2: 1})
    load(lake.pipeline(**holding))
    publish(lake.pipeline(**holding))
    assert held_branch(day(1)) in lake.shop.metadata.refs

    lake.pipeline().retire("ada", "cli", NOW)

    assert lake.rows()[FIRST] == first
    assert {*lake.shop.metadata.refs} == {"main"}
    assert "tidegate.pipeline" not in lake.shop.properties
    with pytest.raises(PipelineRetired):
        load(lake.pipeline())


def test_marker_is_written_beside_the_snapshot_if_asked(lake: LakeToLake) -> None:
    keys = {"commit": {"policies": ["snapshot", "success-file"]}}
    first, second = published(lake, 3, 2, **keys)

    assert (lake.data / f"dt={FIRST}" / "_SUCCESS").exists()
    assert lake.rows()[FIRST] == [*first, *second]
    assert is_true(lake, **keys)


def test_table_without_partitions_is_held_and_published_as_a_whole(lake: LakeToLake) -> None:
    keys: dict[str, Any] = {
        "target": {"partition_by": None},
        "commit": {"trigger": "process-time"},
        "rows": [{"name": "few", "where": "id < 4", "on_failure": "hold"}],
    }
    whole = Partition(())
    ids = lake.commit({1: 3, 2: 2})
    load(lake.pipeline(**keys))
    publish(lake.pipeline(**keys))
    held = lake.shop.metadata.refs["tidegate-held/table"].snapshot_id
    assert sorted(lake.shop.scan(snapshot_id=held).to_arrow()["id"].to_pylist()) == ids

    decide(lake.pipeline(**keys), whole)
    publish(lake.pipeline(**keys))

    assert lake.shop.metadata.refs["main"].snapshot_id == held
    assert {*lake.shop.metadata.refs} == {"main"}
    assert is_true(lake, **keys)


@pytest.mark.on_disk
def test_late_rows_that_are_kept_apart_are_no_part_of_the_table(lake: LakeToLake) -> None:
    (first,) = published(lake, 3)
    side = {"commit": {"late_data": {"side": {"path": str(lake.root / "late")}}}}
    lake.commit({1: 2, 3: 1})
    load(lake.pipeline(**side))

    publish(lake.pipeline(**side))

    assert lake.rows()[FIRST] == first
    assert list((lake.root / "late").rglob("part-*"))


def test_explain_names_the_branch_of_what_is_held(
    lake: LakeToLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.found_by_name(monkeypatch)
    holding = {"rows": [{"name": "few", "where": "id < 2", "on_failure": "hold"}]}
    lake.commit({1: 3, 2: 1})
    load(lake.pipeline(**holding))
    publish(lake.pipeline(**holding))

    said = CliRunner().invoke(app, ["explain", "orders", f"dt={FIRST}"]).output

    assert f"'tidegate-held/dt={FIRST}' of shop.orders" in " ".join(said.split())


@pytest.mark.follows("PublishedInCatalog")
@pytest.mark.parametrize("below", ["", "data", "data/dt=2026-02-01"])
def test_table_is_read_by_its_catalog_and_not_by_markers(lake: LakeToLake, below: str) -> None:
    ids = lake.commit({1: 2, 2: 1})
    load(lake.pipeline())
    publish(lake.pipeline())

    with pytest.raises(PublishedInCatalog, match=f"kind iceberg in {lake.target}. Read it by its"):
        read_committed(lake.target / below)

    assert lake.rows() == {FIRST: ids[:2]}


def test_table_that_has_markers_too_is_read_by_them(lake: LakeToLake) -> None:
    marked = {"commit": {"policies": ["snapshot", "success-file"]}}
    ids = lake.commit({1: 2, 2: 1})
    load(lake.pipeline(**marked))
    publish(lake.pipeline(**marked))

    assert read_committed(lake.data).to_table()["id"].to_pylist() == ids[:2]


def test_rows_that_were_erased_are_in_no_difference(lake: LakeToLake) -> None:
    lake.commit({1: 3, 2: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    lake.commit({1: 1, 3: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    assert lake.pipeline().difference(day(1), 0, 1).found.added == 3

    assert erased(lake, "id = 1").left == ()

    # The files of earlier snapshots stand for as long as the table keeps these.
    with pytest.raises(RevisionFileGone, match="an erasure deleted it") as told:
        lake.pipeline().difference(day(1), 0, 1)
    assert "whose files are kept: 3" in str(told.value)
    assert lake.pipeline().difference(day(1), 0, 3).found.added == 3
