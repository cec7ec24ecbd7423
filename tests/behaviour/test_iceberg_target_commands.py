"""What commands beside load and publish do to an Iceberg table, which stays true after each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from lake_target import LakeToLake
from small_lake import NOW, day, decide, load, local, publish
from tidegate.cli.app import app
from tidegate.errors import PipelineRetired
from tidegate.metastore.iceberg.held import held_branch
from tidegate.model.partition import Partition
from tidegate.model.publication import Approval
from tidegate.model.run import Run
from tidegate.target.compaction import CompactionRule

if TYPE_CHECKING:
    from pathlib import Path

FIRST = "2026-02-01"
ADA = Approval(approved=True, by="ada", at=NOW, comment="doubled")
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
    held = {"rows": [{"name": "few", "where": "id < 4", "on_failure": "hold"}]}
    lake.commit({1: 1, 2: 1})
    load(lake.pipeline(**held))
    publish(lake.pipeline(**held))
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
    held = {"rows": [{"name": "few", "where": "id < 2", "on_failure": "hold"}]}
    lake.commit({1: 3, 2: 1})
    load(lake.pipeline(**held))
    publish(lake.pipeline(**held))

    said = CliRunner().invoke(app, ["explain", "orders", f"dt={FIRST}"]).output

    assert f"'tidegate-held/dt={FIRST}' of shop.orders" in " ".join(said.split())
