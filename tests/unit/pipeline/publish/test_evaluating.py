"""A partition is committed when its turn has come, or a person says so by name (PC-C01)."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.errors import NotCommittable
from tidegate.model.partition import Partition
from tidegate.model.publication import Override
from tidegate.model.watermark import Evaluation, Reason
from tidegate.pipeline.publish.evaluating import ONLY_BY_COMMAND, Evaluator

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY = Partition((("dt", "2026-01-01"),))
WORD = Override("ada", NOW, "complete by mail")


def _evaluator(
    pending: str | None = "pending", *, begun: bool = False, approved: bool = False
) -> Evaluator:
    approval = SimpleNamespace(approval=SimpleNamespace(by="ada"))
    state = None if pending is None else SimpleNamespace(pending=pending)
    ledger: Any = SimpleNamespace(
        partitions=SimpleNamespace(find=lambda _: state),
        publications=SimpleNamespace(
            unrecorded=lambda _: object() if begun else None,
            approved=lambda _: approval if approved else None,
        ),
    )
    config: Any = SimpleNamespace(name="orders")
    return Evaluator(config, ledger)


@pytest.mark.parametrize("reason", Reason)
@pytest.mark.parametrize("by_command", [True, False])
def test_reason_is_passed_over_only_where_a_person_names_the_partition(
    reason: Reason, by_command: bool
) -> None:
    looked = Evaluation(False, reason, "not yet", NOW)

    if by_command and reason in ONLY_BY_COMMAND:
        assert _evaluator().check(DAY, looked, by_command=True) is None
    else:
        with pytest.raises(NotCommittable, match=f"{reason.value}: not yet"):
            _evaluator().check(DAY, looked, by_command=by_command)


def test_word_of_a_person_keeps_what_it_overruled() -> None:
    looked = Evaluation(False, Reason.WATERMARK_BEHIND, "watermark 1, end 2", NOW)

    found = _evaluator().check(DAY, looked, WORD)

    assert found is not None
    assert (found.by, found.overruled) == ("ada", "WATERMARK_BEHIND: watermark 1, end 2")


def test_word_that_was_not_needed_is_not_kept() -> None:
    looked = Evaluation(True, None, "complete", NOW)

    assert _evaluator().check(DAY, looked, WORD) is None


def test_commit_that_was_begun_is_finished_before_anything_is_asked() -> None:
    found = _evaluator("none", begun=True, approved=True).evaluate(DAY, NOW)

    assert found is not None
    assert (found.committable, found.detail) == (True, "a commit was begun and is finished first")


def test_approved_content_is_committed_although_the_partition_is_held() -> None:
    found = _evaluator("held", approved=True).evaluate(DAY, NOW)

    assert found is not None
    assert (found.committable, found.detail) == (True, "approved by ada")


@pytest.mark.parametrize("pending", [None, "none", "held"])
def test_partition_that_waits_for_nothing_or_for_a_person_is_not_evaluated(
    pending: str | None,
) -> None:
    assert _evaluator(pending).evaluate(DAY, NOW) is None
