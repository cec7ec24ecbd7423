"""Ask Airflow what became of the run that holds a window or a partition. Takes nothing."""

from __future__ import annotations

from airflow.sdk.exceptions import AirflowRuntimeError

from tidegate.ledger.holder import Life
from tidegate.pipeline.state.holders import life_of
from tidegate_airflow.runs import read_owner

UNFINISHED = ["queued", "running"]
"""States of a run that may still go on, also while its tasks wait for a slot, a retry, a person."""


def life_in_airflow(owner: str) -> Life:
    """Find out what became of a holder, from inside a task or an Airflow trigger.

    Between its tasks a run renews nothing, and may be queued for hours: it lives as long as Airflow
    calls it unfinished. A retry or a clear of the same run needs no answer, since it has the same
    name. Once the run has ended, or was deleted, its time decides: a task of it that is being
    stopped renews up to then. Where Airflow does not answer, the run may live.

    One Airflow runs a pipeline; of another one's runs this one knows nothing, and its fence alone
    keeps them from harm.
    """
    named = read_owner(owner)
    if named is None:
        return life_of(owner)
    dag_id, run_id = named
    return Life.WAITING if _may_go_on(dag_id, run_id) else Life.RENEWING


def _may_go_on(dag_id: str, run_id: str) -> bool:
    from airflow.sdk.execution_time import task_runner

    if not hasattr(task_runner, "SUPERVISOR_COMMS"):
        # Neither task nor trigger: there is nobody to ask.
        return True
    try:
        # A count, because a run that was deleted has no state but an error.
        count = task_runner.RuntimeTaskInstance.get_dr_count(
            dag_id=dag_id, run_ids=[run_id], states=UNFINISHED
        )
    except AirflowRuntimeError:
        return True
    return count > 0
