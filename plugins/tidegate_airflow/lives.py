"""Ask Airflow for the state of the run that holds a window or a partition. Changes nothing."""

from __future__ import annotations

from airflow.sdk.exceptions import AirflowRuntimeError

from tidegate.ledger.holder import Life
from tidegate.pipeline.state.holders import life_of
from tidegate_airflow.runs import read_owner

UNFINISHED = ["queued", "running"]
"""States of a run that may still continue, even if its tasks wait for a slot, retry or person."""


def life_in_airflow(owner: str) -> Life:
    """Return the state of a holder, from inside a task or an Airflow trigger.

    Between its tasks a run renews nothing, and may be queued for hours: it lives as long as Airflow
    lists it as unfinished. A retry or a clear of the same run needs no answer, because it has the
    same name. Once the run has ended, or was deleted, its time decides: a task of it that is being
    stopped renews until then. If Airflow does not answer, the run may live.

    One Airflow runs a pipeline. The runs of another Airflow are unknown here, and only the fence
    prevents damage by them.
    """
    named = read_owner(owner)
    if named is None:
        return life_of(owner)
    dag_id, run_id = named
    return Life.WAITING if _may_go_on(dag_id, run_id) else Life.RENEWING


def _may_go_on(dag_id: str, run_id: str) -> bool:
    from airflow.sdk.execution_time import task_runner

    if not hasattr(task_runner, "SUPERVISOR_COMMS"):
        # Neither in a task nor in a trigger: there is nobody to ask.
        return True
    try:
        # A count, because asking for the state of a deleted run is an error.
        count = task_runner.RuntimeTaskInstance.get_dr_count(
            dag_id=dag_id, run_ids=[run_id], states=UNFINISHED
        )
    except AirflowRuntimeError:
        return True
    return count > 0
