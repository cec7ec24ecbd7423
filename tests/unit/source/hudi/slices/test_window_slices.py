"""The groups that a window touched are followed through clusterings, archived ones included."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hudi_timelines import END, TIMES, clustered, order, timeline, wrote
from tidegate.errors import HudiFilesCleaned
from tidegate.source.hudi.slices.file_groups import Slice
from tidegate.source.hudi.slices.window_slices import (
    check_groups_stand,
    rewriting_services,
    touched_partitions,
    unread_changes,
)
from tidegate.source.hudi.timeline.loaded import State

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


@pytest.mark.parametrize("is_archived", [True, False], ids=["archived", "active"])
@pytest.mark.parametrize("is_replaced", [True, False], ids=["replaced", "gone"])
def test_group_that_is_not_there_was_replaced_or_cleaned(
    tmp_path: Path, is_replaced: bool, is_archived: bool
) -> None:
    groups = {"p": ["a"]} if is_replaced else {"p": ["z"]}
    overwrite = wrote("b", operation="INSERT_OVERWRITE", partitionToReplaceFileIds=groups)
    older, last = [wrote("a"), overwrite], wrote("c")
    found = timeline(tmp_path, [last], older) if is_archived else timeline(tmp_path, [*older, last])
    touched = touched_partitions(found, [order(0), order(2)], END)
    state, standing = State(found, order(2)), [Slice("p", "b", None), Slice("p", "c", None)]

    if is_replaced:
        check_groups_stand(found, state, touched, standing)
    else:
        with pytest.raises(HudiFilesCleaned, match="because the files of a are not there"):
            check_groups_stand(found, state, touched, standing)


def test_services_that_may_have_moved_rows_follow_the_start_up_to_the_state(
    tmp_path: Path,
) -> None:
    log_compaction = wrote("d", operation="LOG_COMPACT")
    active = [clustered("c", "d"), log_compaction, wrote("e", operation="COMPACT")]
    found = timeline(tmp_path, active, [wrote("a"), clustered("a", "b"), wrote("c")])

    assert rewriting_services(found, order(0), END) == {TIMES[1], TIMES[3], TIMES[5]}
    assert rewriting_services(found, order(0), order(3)) == {TIMES[1], TIMES[3]}
    assert rewriting_services(found, order(1), order(2)) == set()
    assert rewriting_services(found, order(3), END) == {TIMES[5]}
