"""The branch of a held partition is told from others by how its name begins."""

from __future__ import annotations

from tidegate.model.held_branch import HELD, held_branch
from tidegate.model.partition import Partition


def test_branches_of_held_partitions_begin_alike() -> None:
    assert held_branch(Partition((("dt", "1"),))).removesuffix("dt=1") == HELD
    assert held_branch(Partition(())) == f"{HELD}table"
