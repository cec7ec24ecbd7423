"""What a proposal brings that is new, and why a judged one waits for a person."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from tidegate.model.message import Contribution, EventTimes
from tidegate.model.partition import Partition
from tidegate.model.plan import WindowKind
from tidegate.model.publication import CheckResult, Outcome, Publication, PublishedFile, Verdict
from tidegate.model.watermark import ConditionResult, Evaluation, Reason
from tidegate.pipeline.publish.judged import APPROVAL, LATE_CHECK, failed_why, is_news, new_windows

if TYPE_CHECKING:
    from collections.abc import Mapping

NOW = datetime(2026, 6, 1, tzinfo=UTC)
DAY = Partition((("dt", "2026-02-01"),))
STOOD = {"1": "p1", "2": "p2"}


def file(window: int, *merged: int) -> PublishedFile:
    return PublishedFile(f"f{window}", 1, "", 1, window, f"p{window}", "", merged=merged)


@pytest.mark.parametrize(
    ("adds", "told", "new"),
    [
        pytest.param([file(3)], {**STOOD, "3": "p3"}, {3}, id="rows"),
        pytest.param([file(3)], {**STOOD, "3": "p3", "4": "p4"}, {3}, id="rows of one of two"),
        pytest.param([file(4, 3, 4)], {**STOOD, "3": "p3", "4": "p4"}, {3, 4}, id="merged rows"),
        pytest.param([file(2), file(3)], {**STOOD, "3": "p3"}, {3}, id="rows that stood"),
        pytest.param([file(2)], {"1": "p1", "2": "replayed"}, {2}, id="replayed"),
        pytest.param([], {**STOOD, "3": "p3"}, {3}, id="deletes alone"),
        pytest.param([], STOOD, set(), id="nothing"),
    ],
)
def test_windows_are_new_that_bring_rows_or_only_deletes(
    adds: list[PublishedFile], told: Mapping[str, str], new: set[int]
) -> None:
    proposed = Publication(DAY, 1, tuple(adds), (), (), told)

    assert new_windows(proposed, STOOD) == new


@pytest.mark.parametrize(
    ("rows", "late", "kind", "news"),
    [
        pytest.param(3, True, WindowKind.LOAD, True, id="late rows"),
        pytest.param(3, False, WindowKind.LOAD, False, id="rows on time"),
        pytest.param(0, True, WindowKind.LOAD, False, id="no row"),
        pytest.param(3, True, WindowKind.REBUILD, False, id="rows that a rebuild read again"),
    ],
)
def test_news_are_late_rows_that_were_not_there_before(
    rows: int, late: bool, kind: WindowKind, news: bool
) -> None:
    brought = Contribution(3, DAY, "p3", (), rows, 9, EventTimes(), late=late, kind=kind)

    assert is_news(brought) is news


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ([LATE_CHECK], Reason.APPROVAL_MISSING),
        ([LATE_CHECK, "no negative price"], Reason.GATE_FAILED),
        (["no negative price"], Reason.GATE_FAILED),
    ],
)
def test_late_rows_alone_are_no_failed_check(names: list[str], reason: Reason) -> None:
    checks = tuple(CheckResult(name, "critical", False, "1", "0") for name in names)
    verdict = Verdict(Outcome.HOLD, checks, 9, "none", NOW)

    assert failed_why(verdict, NOW).reason is reason


@pytest.mark.parametrize(
    ("names", "judged"),
    [
        ([LATE_CHECK], [(APPROVAL, False)]),
        (["no negative price"], [("gate", False)]),
        (["no negative price", APPROVAL], [("gate", False), (APPROVAL, False)]),
        ([APPROVAL], [(APPROVAL, False)]),
    ],
)
def test_conditions_that_held_before_the_gate_are_named_once(
    names: list[str], judged: list[tuple[str, bool]]
) -> None:
    checks = tuple(CheckResult(name, "critical", False, "1", "0") for name in names)
    verdict = Verdict(Outcome.HOLD, checks, 9, "none", NOW)
    results = [("trigger", True), ("counts", False), ("gate", True), (APPROVAL, None)]
    conditions = tuple(ConditionResult(name, holds, None, "", {}) for name, holds in results)
    before = Evaluation(True, None, "", NOW, conditions=conditions)

    found = failed_why(verdict, NOW, before).conditions

    assert [(it.name, it.holds) for it in found or ()] == [("trigger", True), *judged]
