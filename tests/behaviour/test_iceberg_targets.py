"""Lake to lake: what is published into an Iceberg table, exactly once, and held on a branch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.expressions import EqualTo

from lake_target import LakeToLake
from small_lake import NOW, day, decide, load, publish
from tidegate.model.held_branch import held_branch

if TYPE_CHECKING:
    from pathlib import Path

HOLDING: dict[str, Any] = {"rows": [{"name": "few", "where": "id < 4", "on_failure": "hold"}]}


@pytest.fixture
def lake(tmp_path: Path) -> LakeToLake:
    return LakeToLake(tmp_path / "lake")


def published(lake: LakeToLake, days: dict[int, int], **keys: Any) -> list[int]:
    """Commit to the source, load and publish; the ids of the rows."""
    ids = lake.commit(days)
    load(lake.pipeline(**keys))
    publish(lake.pipeline(**keys))
    return ids


def test_partitions_are_published_by_one_snapshot_each(lake: LakeToLake) -> None:
    ids = published(lake, {1: 3, 2: 2, 3: 1})

    assert lake.rows() == {"2026-02-01": ids[:3], "2026-02-02": ids[3:5]}
    made = lake.history()
    assert [it["tidegate.partition"] for it in made] == ["dt=2026-02-01", "dt=2026-02-02"]
    assert {it["tidegate.pipeline"] for it in made} == {"orders"}
    assert {it["tidegate.revision"] for it in made} == {"1"}
    assert {it["tidegate.run"] for it in made} == {"cli"}
    assert not [path for path in lake.data.rglob("_*") if path.is_file()]


def test_late_rows_come_on_top_and_nothing_is_published_twice(lake: LakeToLake) -> None:
    first = published(lake, {1: 3, 2: 1, 3: 1})
    late = published(lake, {1: 2, 4: 1})

    publish(lake.pipeline())

    assert lake.rows()["2026-02-01"] == sorted(first[:3] + late[:2])
    assert len(lake.history()) == len({it["tidegate.publication"] for it in lake.history()})


def test_partition_without_new_files_gets_no_snapshot(lake: LakeToLake) -> None:
    published(lake, {1: 3, 2: 1})
    before = lake.shop.metadata_location

    lake.pipeline().publish(day(1), "cli", NOW, by_command=True)

    assert lake.shop.metadata_location == before


def test_overwrite_takes_the_files_before_out_of_the_table_and_leaves_them(
    lake: LakeToLake,
) -> None:
    lake.keys["target"] |= {"write": "overwrite"}
    published(lake, {1: 3, 2: 2, 3: 1})
    first = lake.shop.metadata.refs["main"].snapshot_id
    files = {path.name for path in (lake.data / "dt=2026-02-01").iterdir()}

    ids = published(lake, {1: 2, 4: 1})

    assert lake.rows()["2026-02-01"] == ids[:2]
    assert files < {path.name for path in (lake.data / "dt=2026-02-01").iterdir()}
    # What older snapshots name is still to be read.
    before = lake.shop.scan(EqualTo("dt", "2026-02-01"), snapshot_id=first).to_arrow()
    assert before.num_rows == 3


def test_held_partition_stands_on_a_branch_until_it_is_approved(lake: LakeToLake) -> None:
    ids = lake.commit({1: 5, 2: 2, 3: 1})
    load(lake.pipeline(**HOLDING))
    publish(lake.pipeline(**HOLDING))
    held = lake.rows(held_branch(day(1)))

    assert held["2026-02-01"] == ids[:5]
    assert "2026-02-01" not in lake.rows()
    audited = lake.shop.metadata.refs[held_branch(day(2))].snapshot_id

    decide(lake.pipeline(**HOLDING), day(1))
    publish(lake.pipeline(**HOLDING))
    assert lake.rows() == {"2026-02-01": ids[:5]}
    decide(lake.pipeline(**HOLDING), day(2))
    publish(lake.pipeline(**HOLDING))

    assert lake.rows() == {"2026-02-01": ids[:5], "2026-02-02": ids[5:7]}
    assert {*lake.shop.metadata.refs} == {"main"}
    # Another partition came first, so that the same change was committed anew.
    assert lake.shop.metadata.refs["main"].snapshot_id != audited


def test_snapshot_that_was_held_is_the_one_that_is_published(lake: LakeToLake) -> None:
    published(lake, {1: 2, 2: 1}, **HOLDING)
    ids = lake.commit({1: 3, 3: 1})
    load(lake.pipeline(**HOLDING))
    lake.pipeline(**HOLDING).publish(day(1), "cli", NOW)
    held = lake.shop.metadata.refs[held_branch(day(1))].snapshot_id

    decide(lake.pipeline(**HOLDING), day(1))
    lake.pipeline(**HOLDING).publish(day(1), "cli", NOW)

    assert lake.shop.metadata.refs["main"].snapshot_id == held
    assert lake.rows()["2026-02-01"][-3:] == ids[:3]


def test_branch_of_a_rejected_revision_is_dropped(lake: LakeToLake) -> None:
    lake.commit({1: 5, 2: 1})
    load(lake.pipeline(**HOLDING))
    publish(lake.pipeline(**HOLDING))
    assert held_branch(day(1)) in lake.shop.metadata.refs

    decide(lake.pipeline(**HOLDING), day(1), approved=False)

    assert held_branch(day(1)) not in lake.shop.metadata.refs
    assert lake.rows() == {}


def test_branch_follows_what_is_held(lake: LakeToLake) -> None:
    first = lake.commit({1: 5, 2: 1})
    load(lake.pipeline(**HOLDING))
    publish(lake.pipeline(**HOLDING))
    second = lake.commit({1: 2, 2: 1})
    load(lake.pipeline(**HOLDING))

    publish(lake.pipeline(**HOLDING))

    assert lake.rows(held_branch(day(1)))["2026-02-01"] == sorted(first[:5] + second[:2])


def test_fsck_finds_nothing(lake: LakeToLake) -> None:
    published(lake, {1: 3, 2: 1})
    published(lake, {1: 2, 3: 1})

    assert list(lake.pipeline().findings()) == []
