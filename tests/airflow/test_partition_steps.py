"""Held, approved, rejected, lapsed: the tasks around an approval (AF-3.10, AF-3.11, AF-7.9)."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk.exceptions import AirflowSkipException
from jinja2 import Environment
from typer.testing import CliRunner

from airflow_context import task_context
from small_lake import NOW, SmallLake, day, decide, known, load, local, publish
from tidegate.cli.app import app
from tidegate.errors import (
    GateFailed,
    NotApproved,
    NotCommittable,
    PartitionNotFound,
    ProposalMissing,
)
from tidegate.ledger.publications import Publications
from tidegate.model.publication import Outcome, Verdict
from tidegate.model.run import Proposal, Run
from tidegate_airflow.approval import PartitionApproval
from tidegate_airflow.assets import published_asset, staged_asset
from tidegate_airflow.load import announce_window
from tidegate_airflow.partition_steps import (
    ProposeRevision,
    check_partition,
    commit_partition,
    describe_verdict,
)
from tidegate_airflow.publish import publish_dag
from tidegate_airflow.reconcile import announce_again
from tidegate_airflow.sensors import PartitionCommitSensor

if TYPE_CHECKING:
    from airflow_supervisor import Supervisor
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


def propose_and_check(run: str = "run-1", **options: Any) -> tuple[dict[str, Any], str]:
    """Do the first tasks of a publish run; its context and the task that comes next."""
    context = task_context(run=run, partition=KEY, **options)
    propose = ProposeRevision(task_id="propose", pipeline="orders", poll_seconds=2.0)
    context["ti"].handed["propose", "return_value"] = propose.resume(context)
    context["ti"].task_id = "quality_gate"
    return context, check_partition("orders", context)


def answer(context: dict[str, Any], choice: str, *, asks: bool = True, **event: Any) -> None:
    """Come back with a person's answer, as Airflow does."""
    approve = PartitionApproval(
        task_id="approve", pipeline="orders", checked_by="quality_gate", subject="publish?"
    )
    context["ti"].task_id = "approve"
    # The rest of the task needs a server.
    if asks:
        approve.keep_shown(context)
    approve._store(
        context,
        {"chosen_options": [choice], "params_input": {}, "responded_by_user": PERSON, **event},
    )


def test_held_partition_asks_a_person_and_says_why(held: Pipeline) -> None:
    context, following = propose_and_check()

    assert following == "approve"
    report = context["ti"].xcom_pull("quality_gate", key="report")
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
        "quality_gate", key="report"
    )


def look(run: str, **options: Any) -> None:
    """Do the first task of a publish run."""
    sensor = PartitionCommitSensor(task_id="wait", pipeline="orders", poll_seconds=2.0)
    sensor.resume(task_context(run=run, partition=KEY, **options))


@pytest.mark.parametrize("choice", ["Approve", "Reject"])
def test_question_keeps_what_it_shows_while_rows_come(
    held: Pipeline, lake: SmallLake, airflow: Supervisor, choice: str
) -> None:
    airflow.states["orders_publish", "run-1"] = "running"
    context, _ = propose_and_check()
    shown = lake.table.scan(row_filter="at < '2026-02-02T00:00:00+00:00'").to_arrow()["id"]
    lake.commit({1: 4, 3: 1})
    load(held, until=known(9))

    with pytest.raises(AirflowSkipException, match=r"run run-1 of orders_publish, http.* asks"):
        look("run-2")
    with pytest.raises(AirflowSkipException, match="asks"):
        propose_and_check(run="run-2")

    if choice == "Approve":
        answer(context, choice)
        commit_partition("orders", PUBLISHED, context)
    else:
        # It does not concern the rows that came since, which are asked about.
        with pytest.raises(AirflowSkipException, match="checks them, and asks"):
            answer(context, choice)
        airflow.states["orders_publish", "run-1"] = "success"
    assert lake.ids() == (
        {"dt=2026-02-01": sorted(shown.to_pylist())} if choice == "Approve" else {}
    )
    # What came since is asked about next.
    assert day(1) in held.pending(NOW)
    look("run-2")
    newer, following = propose_and_check(run="run-2")
    assert following == "approve"
    assert " 7 rows" in newer["ti"].xcom_pull("quality_gate", key="report")


@pytest.mark.parametrize("state", ["success", "failed", None])
def test_question_of_a_run_that_has_ended_keeps_nothing(
    held: Pipeline, lake: SmallLake, airflow: Supervisor, state: str | None
) -> None:
    propose_and_check()
    if state is not None:
        airflow.states["orders_publish", "run-1"] = state
    lake.commit({1: 4, 3: 1})
    load(held, until=known(9))

    look("run-2")

    newer, _ = propose_and_check(run="run-2")
    assert " 7 rows" in newer["ti"].xcom_pull("quality_gate", key="report")


def test_question_about_rows_that_were_read_again_is_left_to_the_next_run(
    held: Pipeline, lake: SmallLake, airflow: Supervisor
) -> None:
    airflow.states["orders_publish", "run-1"] = "running"
    propose_and_check()
    lake.commit({1: 4})
    load(held, until=known(9))
    run = Run("rebuild", "cli")
    held.finish_load(held.rebuild([day(1)], run, known(9)), known(9), local)

    look("run-2")

    assert propose_and_check(run="run-2")[1] == "approve"


def test_question_is_not_asked_twice_at_once(held: Pipeline, airflow: Supervisor) -> None:
    airflow.states["orders_publish", "run-1"] = "running"
    propose_and_check()

    with pytest.raises(AirflowSkipException, match="run run-1 of orders_publish"):
        look("run-2", run_type="manual")

    # The run that asks may be cleared, and asks again.
    look("run-1", cleared=1)
    assert propose_and_check(cleared=1)[1] == "approve"


def test_question_that_is_asked_again_after_a_rejection_keeps_what_it_shows(
    held: Pipeline, lake: SmallLake, airflow: Supervisor
) -> None:
    context, _ = propose_and_check()
    answer(context, "Reject")
    airflow.states["orders_publish", "run-2"] = "running"
    assert propose_and_check(run="run-2", run_type="manual")[1] == "approve"
    lake.commit({1: 4, 3: 1})
    load(held, until=known(9))

    with pytest.raises(AirflowSkipException, match=r"run run-2 of orders_publish.* asks"):
        look("run-3")


def test_answer_after_a_decision_by_command_counts_for_nothing(held: Pipeline) -> None:
    context, _ = propose_and_check()
    held.reopen(day(1), NOW)

    with pytest.raises(AirflowSkipException, match="no decision is asked for"):
        answer(context, "Approve")


def test_rows_that_came_after_the_approval_wait_for_the_next_revision(
    held: Pipeline, lake: SmallLake
) -> None:
    context, _ = propose_and_check()
    answer(context, "Approve")
    shown = lake.table.scan(row_filter="at < '2026-02-02T00:00:00+00:00'").to_arrow()["id"]
    lake.commit({1: 4, 3: 1})
    load(held, until=known(9))

    commit_partition("orders", PUBLISHED, context)

    assert lake.ids() == {"dt=2026-02-01": sorted(shown.to_pylist())}
    assert context["outlet_events"][PUBLISHED].partition_keys == {KEY}
    # The run that the new rows started asks about them.
    newer, following = propose_and_check(run="run-2")
    assert following == "approve"
    assert "revision 2, 7 rows" in newer["ti"].xcom_pull("quality_gate", key="report")


def test_partition_approved_by_command_is_committed_without_asking_again(
    held: Pipeline, lake: SmallLake
) -> None:
    propose_and_check()
    decide(held, day(1))

    context, following = propose_and_check(run="run-2")

    assert following == "commit"
    commit_partition("orders", PUBLISHED, context)
    assert len(lake.ids()["dt=2026-02-01"]) == 3


def test_commit_that_died_before_its_event_emits_it_when_it_is_retried(
    held: Pipeline, lake: SmallLake
) -> None:
    context, _ = propose_and_check()
    answer(context, "Approve")
    commit_partition("orders", PUBLISHED, context)
    lake.commit({1: 200, 3: 1})
    load(held, until=known(9))
    publish(held)
    before = lake.stamps()
    retried = task_context(partition=KEY)
    retried["ti"].handed = context["ti"].handed

    commit_partition("orders", PUBLISHED, retried)

    event = retried["outlet_events"][PUBLISHED]
    assert event.partition_keys == {KEY}
    assert (event.extra["revision"], event.extra["rows"]) == (1, 3)
    assert lake.stamps() == before


@pytest.mark.parametrize("step", ["advance", "record"])
def test_commit_that_another_run_finished_is_told_by_that_run(
    held: Pipeline, lake: SmallLake, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    context, _ = propose_and_check()
    answer(context, "Approve")
    with monkeypatch.context() as patched:
        patched.setattr(Publications, step, _die)
        with pytest.raises(Died):
            commit_partition("orders", PUBLISHED, context)

    following, task = propose_and_check()

    assert task == "commit"
    commit_partition("orders", PUBLISHED, following)
    event = following["outlet_events"][PUBLISHED]
    assert event.partition_keys == {KEY}
    assert (event.extra["revision"], event.extra["rows"]) == (1, 3)
    assert len(lake.ids()["dt=2026-02-01"]) == 3


@pytest.mark.parametrize("rows", [4, 200], ids=["held", "passed"])
def test_commit_that_another_run_finished_is_told_before_what_came_since(
    held: Pipeline, lake: SmallLake, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    context, _ = propose_and_check()
    answer(context, "Approve")
    with monkeypatch.context() as patched:
        patched.setattr(Publications, "record", _die)
        with pytest.raises(Died):
            commit_partition("orders", PUBLISHED, context)
    lake.commit({1: rows, 3: 1})
    load(held, until=known(9))

    following, task = propose_and_check()

    assert task == "commit"
    commit_partition("orders", PUBLISHED, following)
    event = following["outlet_events"][PUBLISHED]
    assert event.partition_keys == {KEY}
    assert (event.extra["revision"], event.extra["rows"]) == (1, 3)
    # What came since is announced again, and makes the next revision.
    assert day(1) in held.pending(NOW)
    newer, task = propose_and_check(run="run-2")
    assert task == ("approve" if rows == 4 else "commit")
    assert newer["ti"].xcom_pull("propose")["revision"] == 2


class Died(Exception):
    """The process is gone."""


def _die(*_arguments: object) -> None:
    raise Died


def test_wait_marked_as_done_publishes_nothing_and_names_the_override(lake: SmallLake) -> None:
    lake.commit({1: 3})
    pipeline = lake.pipeline()
    load(pipeline)
    context = task_context(partition=KEY)
    propose = ProposeRevision(task_id="propose", pipeline="orders", poll_seconds=2.0)

    with pytest.raises(NotCommittable, match=r"WATERMARK_BEHIND.*publish orders .* --final -m"):
        propose.execute(context)

    assert pipeline.ledger.publications.proposed(day(1)) is None
    assert pipeline.ledger.partitions.get(day(1)).owner is None
    assert lake.ids() == {}


@pytest.mark.follows("ProposalMissing")
def test_proposal_marked_as_done_is_missed_by_every_task_after_it(held: Pipeline) -> None:
    context = task_context(partition=KEY)

    with pytest.raises(ProposalMissing, match="`propose` returned no proposal"):
        check_partition("orders", context)
    with pytest.raises(ProposalMissing):
        answer(context, "Approve")
    with pytest.raises(ProposalMissing):
        commit_partition("orders", PUBLISHED, context)

    assert held.ledger.partitions.get(day(1)).pending == "pending"
    # What the message says to do.
    assert propose_and_check()[1] == "approve"


def test_answer_counts_for_what_was_asked_although_the_tasks_before_it_were_cleared(
    held: Pipeline, lake: SmallLake
) -> None:
    context, _ = propose_and_check()
    asked = context["ti"].xcom_pull("quality_gate", key="shown")
    context["ti"].handed["approve", "shown"] = asked
    lake.commit({1: 4, 3: 1})
    load(held, until=known(9))
    cleared, _ = propose_and_check()
    context["ti"].handed |= cleared["ti"].handed

    with pytest.raises(AirflowSkipException, match=f"{asked}.*was replaced by"):
        answer(context, "Approve", asks=False)

    entry = held.ledger.publications.proposed(day(1))
    assert entry is not None
    assert entry.approval is None


@pytest.mark.follows("NotApproved")
@pytest.mark.parametrize("marked", ["quality_gate", "approve"])
def test_gate_or_approval_marked_as_done_commits_nothing(
    held: Pipeline, lake: SmallLake, marked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.found_by_name(monkeypatch)
    context = task_context(partition=KEY)
    propose = ProposeRevision(task_id="propose", pipeline="orders", poll_seconds=2.0)
    context["ti"].handed["propose", "return_value"] = propose.execute(context)
    if marked == "approve":
        assert check_partition("orders", context) == "approve"

    with pytest.raises(NotApproved, match=f"tidegate explain orders {day(1)}") as refused:
        commit_partition("orders", PUBLISHED, context)

    assert refused.value.outcome == ("hold" if marked == "approve" else "not checked")
    assert lake.ids() == {}
    assert held.ledger.publications.unrecorded(day(1)) is None
    if marked == "approve":
        # What the message says to do: `explain` shows the command, with what it decides on.
        told = CliRunner().invoke(app, ["explain", "orders", str(day(1))], env={"COLUMNS": "400"})
        approve = re.findall(r"tidegate (approve orders \S+ --digest \S+)", told.output)[0]
        decided = CliRunner().invoke(app, shlex.split(approve))
        assert decided.exit_code == 0, decided.output
        commit_partition("orders", PUBLISHED, context)
        assert list(lake.ids()) == [str(day(1))]


def test_approval_asks_with_what_the_gate_found(held: Pipeline) -> None:
    """The body is a template of Airflow's; what it shows has to be there under that name."""
    dag = publish_dag(held.config, 2.0, {"start_date": NOW, "catchup": False})
    approve = dag.get_task("approve")
    context = task_context(partition=KEY)
    propose = ProposeRevision(task_id="propose", pipeline="orders", poll_seconds=2.0)
    context["ti"].handed["propose", "return_value"] = propose.execute(context)
    context["ti"].task_id = dag.get_task("quality_gate").task_id
    check_partition("orders", context)

    body = Environment(autoescape=False).from_string(approve.body).render(ti=context["ti"])

    digest = context["ti"].xcom_pull("propose")["digest"]
    for told in ("dt=2026-02-01", "3 rows", "observed row count 3", digest):
        assert told in body
    assert "body" in approve.template_fields


def test_reconcile_announces_what_is_pending_and_never_what_is_held(held: Pipeline) -> None:
    propose_and_check()
    context = task_context(run="hourly")
    staged = staged_asset("orders")

    announce_again("orders", staged, context)

    assert context["outlet_events"][staged].partition_keys == {"2026-02-02"}
    assert held.ledger.partitions.get(day(1)).pending == "held"


def test_load_that_died_before_its_event_emits_it_when_it_is_retried(lake: SmallLake) -> None:
    lake.commit({1: 3, 2: 1})
    pipeline = lake.pipeline()
    owner = "airflow:orders_load/run-1"
    planned = pipeline.plan(Run("run-1", owner), NOW)
    with local("local") as executor:
        pipeline.stage(planned[0], executor)
    pipeline.announce(planned, NOW)
    context, staged = task_context(), staged_asset("orders")

    announce_window("orders", planned, staged, context)

    event = context["outlet_events"][staged]
    assert event.partition_keys == {KEY, "2026-02-02"}
    assert event.extra["windows"] == [1]


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


@pytest.mark.follows("GateFailed")
def test_pipeline_that_fails_its_gate_ends_the_run(lake: SmallLake) -> None:
    _pipeline(lake, on_failure="fail")

    with pytest.raises(GateFailed, match="observed row count 3"):
        propose_and_check()

    # What the message says to do.
    lake.commit({1: 97})
    load(lake.pipeline(gate={"suite": "suite.json", "on_failure": "fail"}), until=known(9))
    context, following = propose_and_check(run="run-2")
    assert following == "commit"
    commit_partition("orders", PUBLISHED, context)
    assert len(lake.ids()["dt=2026-02-01"]) == 100


def test_proposal_of_a_held_partition_by_a_second_run_skips(held: Pipeline) -> None:
    propose_and_check()

    with pytest.raises(AirflowSkipException, match=r"is held: .* waits for a decision"):
        propose_and_check(run="run-2")


def test_question_names_partition_rows_and_the_check_that_failed(held: Pipeline) -> None:
    context, _ = propose_and_check()

    asked = context["ti"].xcom_pull("quality_gate", key="question")

    assert asked.startswith("dt=2026-02-01, 3 rows: expect_table_row_count_to_be_between")
    assert "observed row count 3" in asked
    assert asked.endswith("Publish revision 1 of orders nevertheless?")
    approve = publish_dag(held.config, 2.0, {}).get_task("approve")
    rendered = Environment(autoescape=False).from_string(approve.subject).render(ti=context["ti"])
    assert rendered == asked
    assert "subject" in approve.template_fields


@pytest.mark.parametrize("outcome", Outcome)
def test_help_about_the_answer_is_only_written_where_a_person_is_asked(outcome: Outcome) -> None:
    proposal = Proposal(day(1), "digest", 1, 3, 1, 0)
    verdict = Verdict(outcome, (), 3, "pandas", NOW)

    assert ("Reject" in describe_verdict(proposal, verdict)) == (outcome is Outcome.HOLD)


def test_comment_may_be_left_out(held: Pipeline) -> None:
    approve = publish_dag(held.config, 2.0, {}).get_task("approve")
    context, _ = propose_and_check()

    answer(context, "Approve", params_input={"comment": None})

    assert approve.params.get_param("comment").resolve(None) is None
    decided = held.ledger.publications.approved(day(1))
    assert decided is not None
    assert decided.approval is not None
    assert decided.approval.comment == ""


@pytest.mark.parametrize(
    "options", [{"run_type": "manual"}, {"cleared": 1}], ids=["triggered", "cleared"]
)
@pytest.mark.parametrize("before", ["marked as done", "rejected"])
def test_question_that_is_gone_is_asked_again_by_a_run_of_the_key(
    held: Pipeline, lake: SmallLake, before: str, options: dict[str, Any]
) -> None:
    context, _ = propose_and_check()
    shown = context["ti"].xcom_pull("quality_gate", key="shown")
    if before == "rejected":
        answer(context, "Reject")
    else:
        with pytest.raises(NotApproved):
            commit_partition("orders", PUBLISHED, context)
    sensor = PartitionCommitSensor(task_id="wait", pipeline="orders", poll_seconds=2.0)

    sensor.resume(task_context(run="run-2", partition=KEY, **options))
    again, following = propose_and_check(run="run-2", **options)

    assert following == "approve"
    assert again["ti"].xcom_pull("quality_gate", key="shown") == shown
    answer(again, "Approve")
    commit_partition("orders", PUBLISHED, again)
    assert len(lake.ids()["dt=2026-02-01"]) == 3


def test_run_that_nobody_started_does_not_ask_a_second_time(held: Pipeline) -> None:
    propose_and_check()
    sensor = PartitionCommitSensor(task_id="wait", pipeline="orders", poll_seconds=2.0)

    with pytest.raises(AirflowSkipException, match=r"`tidegate approve orders dt=2026-02-01`"):
        sensor.resume(task_context(run="run-2", partition=KEY))


def test_run_of_a_partition_that_does_not_exist_fails_and_names_the_nearest(
    held: Pipeline,
) -> None:
    sensor = PartitionCommitSensor(task_id="wait", pipeline="orders", poll_seconds=2.0)

    with pytest.raises(PartitionNotFound) as refused:
        sensor.resume(task_context(run="run-2", partition="2026-01-01", run_type="manual"))

    near = re.findall(r"known are dt=(\S+),", str(refused.value))
    assert near == [KEY]
    sensor.resume(task_context(run="run-3", partition=near[0], run_type="manual"))


@pytest.mark.parametrize("told", ["this", "before", "other", "lost"])
def test_commit_that_is_cleared_tells_its_consumers_once_per_revision(
    held: Pipeline, airflow: Supervisor, told: str
) -> None:
    airflow.states["orders_publish", "run-1"] = "running"
    context, _ = propose_and_check()
    answer(context, "Approve")
    commit_partition("orders", PUBLISHED, context)
    extra = context["outlet_events"][PUBLISHED].extra
    if told == "before":
        # Of a pipeline of the same name that was begun anew.
        airflow.tell(PUBLISHED, KEY, {**extra, "committed_at": NOW.isoformat()})
    elif told == "other":
        # Of a partition that was committed at the same moment.
        airflow.tell(PUBLISHED, "2026-02-02", extra)
    elif told == "this":
        airflow.tell(PUBLISHED, KEY, extra)
    cleared = task_context(partition=KEY, cleared=1)
    cleared["ti"].handed = context["ti"].handed

    if told == "this":
        with pytest.raises(AirflowSkipException, match="was published and announced before"):
            commit_partition("orders", PUBLISHED, cleared)
    else:
        commit_partition("orders", PUBLISHED, cleared)

    keys = cleared["outlet_events"][PUBLISHED].partition_keys
    assert keys == (set() if told == "this" else {KEY})


def test_expected_day_without_rows_gets_its_run_and_is_published(lake: SmallLake) -> None:
    """PC-C04."""
    lake.keys = {"commit": {"expected": {"start": "2026-02-01", "on_empty": "mark"}}}
    lake.commit({1: 1, 3: 1})
    pipeline = lake.pipeline()
    planned = pipeline.plan(Run("run-1", "airflow:orders_load/run-1"), NOW)
    with local("local") as executor:
        pipeline.stage(planned[0], executor)
    context, staged = task_context(), staged_asset("orders")
    again: Any = task_context(run="hourly")

    announce_window("orders", planned, staged, context)
    announce_again("orders", staged, again)
    proposal = pipeline.propose(day(2), "airflow:orders_publish/run-2", NOW)
    assert proposal is not None
    pipeline.gate(day(2), proposal.digest, "airflow:orders_publish/run-2", NOW)
    pipeline.commit(day(2), proposal.digest, "airflow:orders_publish/run-2", NOW)

    keys = {"2026-02-01", "2026-02-02", "2026-02-03"}
    assert context["outlet_events"][staged].partition_keys == keys
    assert again["outlet_events"][staged].partition_keys == keys
    assert lake.ids()["dt=2026-02-02"] == []


def test_reconcile_tells_of_missing_days_once(lake: SmallLake) -> None:
    lake.commit({1: 1, 3: 1})
    load(lake.pipeline())
    for state in lake.pipeline().ledger.partitions.all():
        lake.pipeline().publish(state.partition, "cli", NOW, by_command=True)
    lake.keys = {"commit": {"expected": {"start": "2026-02-01"}, "policies": []}}
    lake.pipeline()
    staged = staged_asset("orders")
    context: Any = task_context(run="hourly")

    announce_again("orders", staged, context)

    assert context["outlet_events"][staged].partition_keys == {"2026-02-03"}
    state = lake.pipeline().ledger.partitions.get(day(2))
    assert (state.name, lake.pipeline().review(NOW).alarms) == ("missing", ())
