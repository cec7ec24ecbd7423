"""Put a run's partition, if it has one, and how the run ended, into the note of the run.

The id of a run that an event started has neither: the scheduler makes it from the time alone. The
tasks hand on the reason as an XCom, and the scheduler writes the note, because a task cannot.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowRuntimeError

from tidegate.errors.commands import naming

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun
    from airflow.sdk import Context
    from sqlalchemy.orm import Session

REASON = "reason"
"""XCom key of how a run ended, as far as the last task that said so knew."""

_FAILED = "failed in "
_TAG = "tidegate"
_LONGEST = 900
"""Characters of a note; Airflow's limit is 1,000."""


def keep_reason(reason: str) -> None:
    """Hand on why the run of this task ends as it does; nothing outside of a task."""
    with contextlib.suppress(RuntimeError):
        get_current_context()["ti"].xcom_push(key=REASON, value=reason[:_LONGEST])


def keep_failure(context: Context, name: str) -> None:
    """Hand on why a run fails, after the last try of one of its tasks."""
    error, instance = context.get("exception"), context["ti"]
    if error is None:
        return
    said = naming(" ".join(str(error).split()), name) or type(error).__name__
    reason = f"{_FAILED}{instance.task_id}: {said}"
    with contextlib.suppress(AirflowRuntimeError):
        instance.xcom_push(key=REASON, value=reason[:_LONGEST])


def write_note(dag_run: DagRun) -> None:
    """Write the note of a run, unless a person wrote one.

    *Runs on:* the scheduler, in its transaction. *Called:* when a run starts, succeeds or fails.
    """
    from sqlalchemy.orm import object_session

    session = object_session(dag_run)
    if session is None or _TAG not in (getattr(dag_run.dag, "tags", None) or ()):
        return
    key = dag_run.partition_key or (dag_run.conf or {}).get("partition")
    kind = str(dag_run.dag_id.rpartition("_")[2])
    lead = f"Partition {key}"[:_LONGEST] if key else kind.capitalize()
    if dag_run.note and not dag_run.note.startswith(lead):
        return
    reason = _reason(session, dag_run)
    if reason is not None and reason.startswith(_FAILED) == (dag_run.state == "failed"):
        dag_run.note = f"{lead}: {reason}"[:_LONGEST]
    elif key or dag_run.note:
        # What a cleared run said before does not hold for the run as it goes on.
        dag_run.note = lead


def _reason(session: Session, dag_run: DagRun) -> str | None:
    """Return what the tasks of a run said last; None while it runs."""
    if dag_run.state not in {"success", "failed"}:
        return None
    from airflow.models.xcom import XComModel
    from sqlalchemy import select

    query = (
        select(XComModel.value)
        .where(
            XComModel.dag_id == dag_run.dag_id,
            XComModel.run_id == dag_run.run_id,
            XComModel.key == REASON,
        )
        .order_by(XComModel.timestamp.desc())
        .limit(1)
    )
    with session.no_autoflush:
        found = session.execute(query).first()
    return None if found is None else str(XComModel.deserialize_value(found))
