"""What every built-in policy promises; a policy is one entry in `POLICIES` (PC-A04)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from crash.faults import Stopper, stopping_storage
from small_lake import stamps
from tidegate.commit.policies import OPENERS, PolicyContext, open_policy
from tidegate.config import (
    CustomPolicy,
    MetastorePolicy,
    SnapshotPolicy,
    SuccessFilePolicy,
    TargetConfig,
)
from tidegate.model.partition import Partition
from tidegate.pipeline.executors import table_in_spark
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.storage import Storage

POLICIES = {"success-file": SuccessFilePolicy()}
"""Those that change files; `test_metastore` has the same for the one that changes a catalog."""
TARGET = TargetConfig(path="/lake/orders")


def commit(name: str, root: Path, storage: Storage) -> None:
    """Call a policy for one revision of a partition, as any repetition does."""
    partition = root / "table" / "dt=2026-02-01"
    partition.mkdir(parents=True, exist_ok=True)
    open_policy(POLICIES[name], TARGET, table_in_spark).commit(
        PolicyContext(
            pipeline="orders",
            table_root=str(root / "table"),
            partition=Partition((("dt", "2026-02-01"),)),
            partition_root=str(partition),
            revision=1,
            key="key",
            files=("part-1", "part-2"),
            rows=3,
            size_bytes=30,
            marker_name="_SUCCESS",
            marker='{"revision": 1}',
            storage=storage,
            columns=None,
            scratch=str(root / "work" / "scratch"),
        )
    )


class DiedError(Exception):
    """In place of the death of the process."""


def die() -> None:
    raise DiedError


def contents(root: Path) -> dict[str, str]:
    return {path: digest for path, (digest, _) in stamps(root / "table").items()}


def test_every_policy_is_in_the_suite() -> None:
    assert POLICIES.keys() == OPENERS.keys() - {
        CustomPolicy.word,
        MetastorePolicy.word,
        SnapshotPolicy.word,
    }


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_policy_that_is_repeated_has_the_effect_of_once(tmp_path: Path, name: str) -> None:
    commit(name, tmp_path, LocalStorage())
    once = stamps(tmp_path / "table")

    commit(name, tmp_path, LocalStorage())

    assert stamps(tmp_path / "table") == once


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_policy_that_died_at_any_change_is_made_good_by_a_repetition(
    tmp_path: Path, name: str
) -> None:
    commit(name, tmp_path / "whole", LocalStorage())
    for number in range(1, 100):
        root, dying = tmp_path / str(number), Stopper(number, dying=die)
        try:
            commit(name, root, stopping_storage(dying))
        except DiedError:
            commit(name, root, LocalStorage())
            assert contents(root) == contents(tmp_path / "whole"), f"died before {dying.made[-1]}"
        else:
            break
    assert number > 1
