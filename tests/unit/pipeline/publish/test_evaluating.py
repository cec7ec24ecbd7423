"""A partition is committed when its turn has come, or a person says so by name (PC-C01)."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.config import PipelineConfig
from tidegate.errors import NotCommittable
from tidegate.model.partition import Partition
from tidegate.model.publication import Override
from tidegate.model.watermark import ConditionResult, Evaluation, Reason
from tidegate.pipeline.publish.evaluating import ONLY_BY_COMMAND, Evaluator

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY = Partition((("dt", "2026-01-01"),))
CONFIG = SimpleNamespace(name="orders")
WORD = Override("ada", NOW, "complete by mail")


def _evaluator(
    pending: str | None = "pending",
    *,
    begun: bool = False,
    approved: bool = False,
    why: Evaluation | None = None,
    config: Any = CONFIG,
    kept: list[Evaluation] | None = None,
) -> Evaluator:
    """Give one whose ledger knows one partition; `kept` takes the answers that it is told."""
    approval = SimpleNamespace(approval=SimpleNamespace(by="ada"))
    state = SimpleNamespace(
        partition=DAY, pending=pending, first_seen=NOW, end=None, revision=0, rows=0, why=why
    )

    def record_why(_partition: Partition, found: Evaluation) -> None:
        state.why = found
        if kept is not None:
            kept.append(found)

    known = SimpleNamespace(
        state=state,
        contributions=(),
        newest=None,
        begun=object() if begun else None,
        approved=approval if approved else None,
    )
    ledger: Any = SimpleNamespace(
        pipeline=SimpleNamespace(find=lambda: None),
        known_partition=lambda _: None if pending is None else known,
        partitions=SimpleNamespace(record_why=record_why),
        reading_together=contextlib.nullcontext,
    )
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


def test_name_alone_does_not_pass_over_another_condition_that_fails() -> None:
    conditions = (
        ConditionResult("trigger", False, Reason.DEFAULT_PARTITION, "it has no time", {}),
        ConditionResult("counts", False, Reason.COUNT_SHORT, "4 of 5 rows upstream", {}),
    )
    looked = Evaluation(
        False, Reason.DEFAULT_PARTITION, "it has no time", NOW, conditions=conditions
    )

    with pytest.raises(NotCommittable, match="4 of 5 rows"):
        _evaluator().check(DAY, looked, by_command=True)


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


def test_policy_that_failed_a_begun_commit_is_told_until_the_commit_ends() -> None:
    failed = Evaluation(True, Reason.POLICY_FAILED, "policy 'hive' failed: it is away", NOW)
    later = NOW + timedelta(minutes=1)

    found = _evaluator("pending", begun=True, why=failed).evaluate(DAY, later)

    assert found == replace(failed, evaluated_at=later)


def test_run_that_waits_is_kept_although_the_answer_is_the_same() -> None:
    config = PipelineConfig.from_resolved(
        {
            "name": "orders",
            "source": {"kind": "files", "path": "/in"},
            "target": {"path": "/out", "partition_by": {"dt": "dt"}},
            "commit": {"trigger": "process-time", "delay": "1h"},
        }
    )
    kept: list[Evaluation] = []
    evaluator = _evaluator(config=config, kept=kept)

    for waiting in (None, None, "run-2", None):
        evaluator.evaluate(DAY, NOW, waiting)

    assert [why.waiting for why in kept] == [None, "run-2"]
