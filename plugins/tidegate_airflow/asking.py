"""Ask Airflow about runs, from inside a task or an Airflow trigger. Changes nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from airflow.sdk.exceptions import AirflowRuntimeError
from airflow.sdk.execution_time.comms import AssetEventsResult, GetAssetEventByAsset

from tidegate_airflow.runs import read_owner

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow.sdk import Asset
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    from tidegate.model.ledger_rows import RevisionEntry

_Answer = TypeVar("_Answer")

_CLOCKS = timedelta(hours=1)
"""Difference between the clocks of a worker and of Airflow's database."""

_EVENTS = 1000
"""Events after a commit among which its own is looked for: it is one of the first."""

AT_WORK = "running"
"""State of a run whose tasks may still continue, even if they wait for a slot, retry or person."""

QUEUED = "queued"
"""State of a run that has not begun, or that was cleared."""

NOT_DONE = ["null", "scheduled", "queued", "running", "restarting", "up_for_retry"]
"""States of a task that has not come to its end or to its first wait."""


def will_look_again(owner: str) -> bool | None:
    """Return whether a run that said that it waits still will; None if nobody can tell.

    A run that is queued was cleared, and looks once its turn has come.
    """
    named = read_owner(owner)
    return None if named is None else is_listed(*named, states=[AT_WORK, QUEUED])


def is_at_work(owner: str) -> bool | None:
    """Return whether a run has begun and not ended; None if nobody can tell."""
    named = read_owner(owner)
    return None if named is None else is_listed(*named, states=[AT_WORK])


def runs_that_have_not_looked(dag_id: str, task_id: str) -> int | None:
    """Return how many runs of a DAG have not done their first task yet; None if nobody can tell."""
    return _asked(
        lambda task: task.get_ti_count(dag_id=dag_id, task_ids=[task_id], states=NOT_DONE)
    )


def is_skipped(dag_id: str, run_id: str, task_id: str) -> bool:
    """Return whether a task of a run was skipped; False if nobody can tell."""
    found = _asked(
        lambda task: task.get_task_states(dag_id=dag_id, task_ids=[task_id], run_ids=[run_id])
    )
    return bool(found and found.get(run_id, {}).get(task_id) == "skipped")


def is_announced(published: Asset, revision: RevisionEntry) -> bool:
    """Return whether an event told of a revision already; False if nobody can tell.

    Events are stored with the success of the task that emits them: one that is missing was lost.
    """
    from airflow.sdk.execution_time import task_runner

    after = revision.committed_at - _CLOCKS
    asked = GetAssetEventByAsset(name=published.name, uri=published.uri, after=after, limit=_EVENTS)
    told = _asked(lambda _task: task_runner.SUPERVISOR_COMMS.send(asked))
    return isinstance(told, AssetEventsResult) and any(
        revision.is_told_by(event.partition_key, event.extra) for event in told.asset_events
    )


def is_listed(dag_id: str, run_id: str, states: list[str]) -> bool | None:
    """Return whether Airflow has a run in one of the states; None if nobody can tell."""
    # A count, because asking for the state of a deleted run is an error.
    count = _asked(lambda task: task.get_dr_count(dag_id=dag_id, run_ids=[run_id], states=states))
    return None if count is None else count > 0


def _asked(question: Callable[[type[RuntimeTaskInstance]], _Answer]) -> _Answer | None:
    """Return Airflow's answer; None outside of tasks and triggers, and if it does not answer."""
    from airflow.sdk.execution_time import task_runner

    if not hasattr(task_runner, "SUPERVISOR_COMMS"):
        return None
    try:
        return question(task_runner.RuntimeTaskInstance)
    except AirflowRuntimeError:
        return None
