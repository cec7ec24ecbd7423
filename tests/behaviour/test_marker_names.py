"""A marker may have any name: readers, fsck and a restored ledger find it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from small_lake import SmallLake, load, publish
from tidegate import read_committed

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.pipeline import Pipeline


def ids(lake: SmallLake) -> list[int]:
    return sorted(read_committed(lake.target).to_table(columns=["id"])["id"].to_pylist())


@pytest.mark.parametrize("name", ["_DONE", ".published"])
def test_table_with_markers_of_another_name_is_read_checked_and_restored(
    tmp_path: Path, name: str
) -> None:
    """PC-V11."""
    lake = SmallLake(tmp_path / "lake", keys={"commit": {"marker": {"name": name}}})
    first = lake.commit({1: 3, 2: 1})[:3]
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline)
    standing = pipeline.ledger.partitions.all()
    read = ids(lake)
    found = list(pipeline.findings())
    (lake.root / "ledger.db").unlink()

    again = lake.pipeline()
    again.restore_ledger()

    assert read == ids(lake) == first
    assert found == list(again.findings()) == []
    assert [(item.partition, item.revision, item.pending) for item in standing] == [
        (item.partition, item.revision, item.pending) for item in again.ledger.partitions.all()
    ]
    late = lake.commit({1: 2})
    load(again)
    publish(again)
    assert ids(lake) == [*first, *late]


def markers(lake: SmallLake) -> list[str]:
    return sorted(path.name for path in lake.target.glob("dt=*/[_.]*"))


def renamed(lake: SmallLake, name: str) -> Pipeline:
    return lake.pipeline(commit={"marker": {"name": name}})


def test_marker_that_is_renamed_replaces_the_one_that_stands(tmp_path: Path) -> None:
    """With both, a reader of the old name would go on with the files of the old revision."""
    lake = SmallLake(tmp_path / "lake")
    rows = lake.commit({1: 3, 2: 1})[:3]
    load(lake.pipeline())
    publish(lake.pipeline())
    assert list(renamed(lake, "_DONE").findings()) == []

    for name in ("_DONE", "_DONE", "_SUCCESS"):
        rows += lake.commit({1: 2})
        load(renamed(lake, name))
        publish(renamed(lake, name))

        assert markers(lake) == [name]
        assert ids(lake) == rows
        assert list(renamed(lake, name).findings()) == []


def test_fsck_names_a_marker_that_an_earlier_version_left_beside_the_renamed_one(
    tmp_path: Path,
) -> None:
    lake = SmallLake(tmp_path / "lake")
    lake.commit({1: 3, 2: 1})
    load(renamed(lake, "_DONE"))
    publish(renamed(lake, "_DONE"))
    (folder,) = lake.target.glob("dt=*")
    (folder / "_SUCCESS").write_bytes((folder / "_DONE").read_bytes())

    (found,) = renamed(lake, "_DONE").findings()

    assert found.startswith(f"{folder.name}/_SUCCESS: stands in the table")
