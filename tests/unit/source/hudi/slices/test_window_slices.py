"""The groups that a window touched are followed through clusterings, archived ones included."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hudi_timelines import END, TIMES, clustered, order, timeline, wrote
from tidegate.source.hudi.slices.window_slices import touched_partitions, unread_changes

if TYPE_CHECKING:
    from pathlib import Path


def test_groups_are_those_that_the_writes_wrote(tmp_path: Path) -> None:
    found = timeline(tmp_path, [wrote("a"), wrote("b"), wrote("c")])

    touched = touched_partitions(found, [order(0), order(2)], END)

    assert touched["p"].groups == {"a", "c"}
    assert touched["p"].instants == (TIMES[0], TIMES[2])
    assert touched["p"].files == {"a.parquet", "c.parquet"}


def test_groups_are_followed_through_clusterings_one_after_the_other(tmp_path: Path) -> None:
    found = timeline(tmp_path, [wrote("a"), clustered("a", "b"), clustered("b", "c")])

    assert touched_partitions(found, [order(0)], END)["p"].groups == {"a", "b", "c"}
    assert touched_partitions(found, [order(0)], order(1))["p"].groups == {"a", "b"}


def test_groups_are_followed_through_archived_clusterings(tmp_path: Path) -> None:
    found = timeline(tmp_path, [clustered("b", "c"), wrote("d")], [wrote("a"), clustered("a", "b")])

    assert touched_partitions(found, [order(0)], END)["p"].groups == {"a", "b", "c"}


def test_overwritten_groups_are_not_followed_but_told(tmp_path: Path) -> None:
    overwrite = wrote("b", operation="INSERT_OVERWRITE", partitionToReplaceFileIds={"p": ["a"]})
    found = timeline(tmp_path, [wrote("a"), overwrite])

    assert touched_partitions(found, [order(0)], END)["p"].groups == {"a"}
    (note,) = unread_changes(found, [order(0), order(1)])
    assert "replaced 1 file groups in p" in note
