"""Ask Airflow for the state of the run that holds a window or a partition. Changes nothing."""

from __future__ import annotations

from tidegate.ledger.holder import Life
from tidegate.pipeline.state.holders import life_of
from tidegate_airflow.asking import AT_WORK, is_listed
from tidegate_airflow.runs import read_owner


def life_in_airflow(owner: str) -> Life:
    """Return the state of a holder, from inside a task or an Airflow trigger.

    Between its tasks a run renews nothing, and its next task may be queued for hours: it is alive
    as long as Airflow lists it as running. A retry or a clear of the same run needs no answer,
    because it has the same name. Once the run has ended, or was deleted, what it holds is free at
    once: Airflow is already stopping a task that has not noticed, and its fence is lost.

    A run that is queued has not begun, or was cleared after it had ended, and waits for its turn,
    perhaps for that of the run that asks: waiting for each other, both would wait forever.

    If Airflow does not answer, the run may be alive. One Airflow runs a pipeline. The runs of
    another Airflow are unknown here, and only the fence prevents damage by them.
    """
    named = read_owner(owner)
    if named is None:
        return life_of(owner)
    dag_id, run_id = named
    return Life.WAITING if _may_go_on(dag_id, run_id) else Life.GONE


def _may_go_on(dag_id: str, run_id: str) -> bool:
    return is_listed(dag_id, run_id, states=[AT_WORK]) is not False
