"""Held, approved, rejected, lapsed: the tasks around an approval (AF-3.10, AF-3.11, AF-7.9)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk.exceptions import AirflowSkipException

from airflow_context import task_context
from small_lake import SmallLake, day, known, load
from tidegate.errors import GateFailed
from tidegate_airflow.approval import PartitionApproval
from tidegate_airflow.assets import published_asset
from tidegate_airflow.partition_steps import ProposeRevision, check_partition, commit_partition

if TYPE_CHECKING:
    from tidegate.pipeline import Pipeline

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(120)]

KEY = "2026-02-01"
PUBLISHED = published_asset("orders")
PERSON = {"id": "7", "name": "Ada"}


def many_rows(severity: str = "critical") -> dict[str, Any]:
    """Give a suite that a small partition fails."""
    expectation = {
        "type": "expect_table_row_count_to_be_between",
        "kwargs": {"min_value": 100},
        "severity": severity,
    }
    return {"name": "orders", "expectations": [expectation]}


@pytest.fixture
def held(lake: SmallLake) -> Pipeline:
    """Give a pipeline with one complete partition that its gate does not let through."""
    return _pipeline(lake)


def _pipeline(lake: SmallLake, severity: str = "critical", **gate: str) -> Pipeline:
    (lake.root / "suite.json").write_text(json.dumps(many_rows(severity)))
    lake.commit({1: 3})
    lake.commit({2: 3})
    pipeline = lake.pipeline(gate={"suite": "suite.json", **gate})
    load(pipeline, until=known(5))
    return pipeline


def propose_and_check(run: str = "run-1") -> tuple[dict[str, Any], str]:
    """Do the first tasks of a publish run; its context and the task that comes next."""
    context = task_context(run=run, partition=KEY)
    propose = ProposeRevision(task_id="propose", pipeline="orders", poll_seconds=2.0)
    context["ti"].handed["propose", "return_value"] = propose.resume(context)
    return context, check_partition("orders", context)


def answer(context: dict[str, Any], choice: str, **event: Any) -> None:
    """Come back with a person's answer, as Airflow does."""
    approve = PartitionApproval(
        task_id="approve", pipeline="orders", proposed_by="propose", subject="publish?"
    )
    # The rest of the task needs a server.
    approve._store(
        context,
        {"chosen_options": [choice], "params_input": {}, "responded_by_user": PERSON, **event},
    )


def test_held_partition_asks_a_person_and_says_why(held: Pipeline) -> None:
    context, following = propose_and_check()

    assert following == "approve"
    report = context["ti"].xcom_pull("task", key="report")
    assert "dt=2026-02-01" in report
    assert "observed row count 3" in report
    # The ledger says so before anybody is asked: after a rejection no task runs any more.
    assert held.ledger.partitions.get(day(1)).pending == "held"


def test_approved_partition_is_committed_with_who_approved(held: Pipeline, lake: SmallLake) -> None:
    context, _ = propose_and_check()

    answer(context, "Approve", params_input={"comment": "few orders on a Sunday"})
    commit_partition("orders", PUBLISHED, context)

    marker = json.loads((lake.target / "dt=2026-02-01" / "_SUCCESS").read_text())
    assert marker["approval"]["by"] == "Ada"
    assert marker["approval"]["comment"] == "few orders on a Sunday"
    assert context["outlet_events"][PUBLISHED].partition_keys == {KEY}


def test_rejected_partition_stays_held_with_who_rejected(held: Pipeline, lake: SmallLake) -> None:
    context, _ = propose_and_check()

    answer(context, "Reject")

    state = held.ledger.partitions.get(day(1))
    assert state.pending == "held"
    assert state.why is not None
    assert "rejected by Ada" in state.why.detail
    assert not (lake.target / "dt=2026-02-01").exists()


def test_answer_to_content_that_changed_counts_for_nothing(held: Pipeline, lake: SmallLake) -> None:
    context, _ = propose_and_check()
    lake.commit({1: 4, 3: 1})
    load(held, until=known(9))
    newer, _ = propose_and_check(run="run-2")

    with pytest.raises(AirflowSkipException, match="was replaced by"):
        answer(context, "Approve")

    entry = held.ledger.publications.proposed(day(1))
    assert entry is not None
    assert entry.approval is None
    assert "changed since it was last looked at: +4 rows" in newer["ti"].xcom_pull(
        "task", key="report"
    )


def test_answer_after_a_decision_by_command_counts_for_nothing(held: Pipeline) -> None:
    context, _ = propose_and_check()
    held.reopen(day(1))

    with pytest.raises(AirflowSkipException, match="nothing to decide"):
        answer(context, "Approve")


def test_rows_that_came_after_the_check_skip_the_commit(held: Pipeline, lake: SmallLake) -> None:
    context, _ = propose_and_check()
    answer(context, "Approve")
    lake.commit({1: 4, 3: 1})
    load(held, until=known(9))

    with pytest.raises(AirflowSkipException, match="content changed since it was checked"):
        commit_partition("orders", PUBLISHED, context)

    assert not (lake.target / "dt=2026-02-01" / "_SUCCESS").exists()
    assert context["outlet_events"][PUBLISHED].partition_keys == set()


def test_rows_that_came_before_the_hold_skip_the_check(held: Pipeline, lake: SmallLake) -> None:
    context = task_context(partition=KEY)
    propose = ProposeRevision(task_id="propose", pipeline="orders", poll_seconds=2.0)
    context["ti"].handed["propose", "return_value"] = propose.resume(context)
    lake.commit({1: 4, 3: 1})
    load(held, until=known(9))

    with pytest.raises(AirflowSkipException, match="content changed since it was checked"):
        check_partition("orders", context)

    # The run that the new rows started takes the partition over at once.
    _, following = propose_and_check(run="run-2")
    assert following == "approve"


def test_warning_goes_on_to_the_commit(lake: SmallLake) -> None:
    _pipeline(lake, severity="warning")

    _, following = propose_and_check()

    assert following == "commit"


def test_pipeline_that_fails_its_gate_ends_the_run(lake: SmallLake) -> None:
    _pipeline(lake, on_failure="fail")

    with pytest.raises(GateFailed, match="observed row count 3"):
        propose_and_check()


def test_proposal_of_a_held_partition_by_a_second_run_skips(held: Pipeline) -> None:
    propose_and_check()

    with pytest.raises(AirflowSkipException, match="nothing is pending"):
        propose_and_check(run="run-2")
