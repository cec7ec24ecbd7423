"""Erasures and undos that do not stand are told; what came to nothing, or stands, is not."""

from __future__ import annotations

from datetime import UTC, datetime

from tidegate.model.partition import Partition
from tidegate.model.publication import Approval, Publication, Undo
from tidegate.pipeline.upkeep.taken_back import TakenBack, taken_back

DAY = Partition((("dt", "2026-01-01"),))
OTHER = Partition((("dt", "2026-01-02"),))
SAID = Approval(approved=True, by="ada", at=datetime(2026, 1, 1, tzinfo=UTC))
ERASED = Approval(approved=True, by="ada", at=datetime(2026, 1, 1, tzinfo=UTC), erases=1)


def made(
    revision: int, *windows: int, partition: Partition = DAY, undone: Undo | None = None
) -> Publication:
    plans = {str(window): f"p{window}" for window in windows}
    return Publication(partition, revision - 1, (), (), (), plans, undone)


UNDONE = made(3, 1, undone=Undo(1, {"2": "p2"}, {}))


def test_newest_erasure_and_undo_after_what_stands_are_told_by_partition() -> None:
    commits = [
        (made(2, 1, partition=OTHER), ERASED),
        (made(4, 1), ERASED),
        (UNDONE, SAID),
        (made(2, 1, 2), ERASED),
        (made(1, 1), None),
    ]

    found = list(taken_back(commits, {DAY.path: 1, OTHER.path: 1}))

    assert found == [
        TakenBack(DAY, 4, None),
        TakenBack(DAY, 3, 1),
        TakenBack(OTHER, 2, None),
    ]


def test_what_stands_and_what_only_a_gate_asked_about_is_not_told() -> None:
    commits = [(made(2, 1, 2), ERASED), (UNDONE, SAID), (made(4, 1, 3), SAID)]

    assert list(taken_back(commits, {DAY.path: 3})) == []


def test_partition_of_which_nothing_stands_is_not_told() -> None:
    assert list(taken_back([(made(2, 1), ERASED), (UNDONE, SAID)], {})) == []


def test_undo_whose_rows_were_released_later_is_not_told() -> None:
    commits = [(UNDONE, SAID), (made(4, 1, 2), None)]

    assert list(taken_back(commits, {DAY.path: 2})) == []
