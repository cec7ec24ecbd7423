"""What of staged files is needed, by the state of its partition."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from small_lake import day
from tidegate.model.ledger_rows import (
    KnownPartition,
    PartitionState,
    PublicationEntry,
    RevisionEntry,
)
from tidegate.model.message import Contribution, EventTimes, PartFile, Staged
from tidegate.model.plan import WindowKind
from tidegate.model.publication import Publication, PublicationState, PublishedFile
from tidegate.pipeline.upkeep.needed import Needs

if TYPE_CHECKING:
    from tidegate.model.partition import Partition

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def brought(window: int, kind: WindowKind = WindowKind.LOAD, plan: str = "plan") -> Contribution:
    return Contribution(window, day(1), plan, ("s",), 1, 1, EventTimes(), kind=kind)


def known(
    *contributions: Contribution,
    pending: str = "none",
    published: dict[str, str] | None = None,
    begun: PublicationEntry | None = None,
) -> KnownPartition:
    state = PartitionState(day(1), None, None, NOW, 1, 1, pending, None, None, None)
    newest = published and RevisionEntry(
        day(1), 1, "digest", published, 1, 1, None, {}, "plan.json", "cli", NOW
    )
    return KnownPartition(state, contributions, newest or None, begun, None, None)


def staged(partition: Partition) -> Staged:
    return Staged((PartFile(partition, "part", "staged/part", 1, "0", 1, EventTimes()),))


@pytest.mark.parametrize(
    ("told", "window", "is_needed"),
    [
        pytest.param(known(brought(1)), 1, True, id="in effect"),
        pytest.param(known(brought(1), brought(2, WindowKind.REBUILD)), 1, False, id="reset"),
        pytest.param(
            known(brought(1), brought(2, WindowKind.REBUILD), pending="pending"),
            1,
            True,
            id="about to be reset",
        ),
        pytest.param(known(brought(1), brought(2, WindowKind.REBUILD)), 2, True, id="reset by"),
    ],
)
def test_part_files_are_needed_until_a_revision_stands_that_reset_them(
    told: KnownPartition, window: int, is_needed: bool
) -> None:
    assert bool(Needs.of([told]).parts(window, staged(day(1)))) == is_needed


def test_part_files_of_a_partition_that_is_not_known_are_needed() -> None:
    assert Needs.of([known(brought(1))]).parts(1, staged(day(2)))


@pytest.mark.parametrize(
    ("told", "waiting"),
    [
        pytest.param(known(brought(1)), set(), id="published"),
        pytest.param(known(brought(1), pending="held"), {1}, id="held"),
        pytest.param(
            known(brought(1), brought(2), pending="pending", published={"1": "plan"}),
            {2},
            id="late",
        ),
        pytest.param(
            known(brought(1, plan="new"), pending="pending", published={"1": "plan"}),
            {1},
            id="replayed",
        ),
    ],
)
def test_windows_wait_as_long_as_their_rows_are_not_published(
    told: KnownPartition, waiting: set[int]
) -> None:
    assert Needs.of([told]).waiting == waiting


def test_files_of_a_commit_that_has_begun_are_needed() -> None:
    file = PublishedFile("part", 1, "0", 1, 1, "plan", "windows/000001/plan/staged/part")
    publication = Publication(day(1), 0, (file,), (), (), {})
    begun = PublicationEntry(publication, 1, None, None, PublicationState.PREPARED)

    assert Needs.of([known(brought(1), begun=begun)]).moving == {file.staged}
