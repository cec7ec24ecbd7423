"""A marker may have any name: readers, fsck and a restored ledger find it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from small_lake import SmallLake, load, publish
from tidegate import read_committed

if TYPE_CHECKING:
    from pathlib import Path


def ids(lake: SmallLake) -> list[int]:
    return sorted(read_committed(lake.target).to_table(columns=["id"])["id"].to_pylist())


@pytest.mark.parametrize("name", ["_DONE", ".published"])
def test_table_with_markers_of_another_name_is_read_checked_and_restored(
    tmp_path: Path, name: str
) -> None:
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
