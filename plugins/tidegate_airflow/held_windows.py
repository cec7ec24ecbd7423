"""Hand the windows of a run from task to task, and plan them again if the run has lost them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tidegate.model.run import PlannedWindow
from tidegate_airflow.asking import is_skipped
from tidegate_airflow.notes import keep_reason

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from airflow.sdk import Context

    from tidegate.model.run import Run
    from tidegate.pipeline import Pipeline

_LOG = logging.getLogger(__name__)


def planned_windows(context: Context, *task_ids: str) -> tuple[PlannedWindow, ...]:
    """Return the windows that the first of these tasks handed over; none if all were skipped.

    A task that a cleared run skips without starting it keeps what it handed over before.
    """
    run = context["dag_run"]
    for task_id in task_ids:
        handed = context["ti"].xcom_pull(task_ids=task_id)
        if handed is not None and not is_skipped(run.dag_id, run.run_id, task_id):
            return tuple(PlannedWindow.from_json(item) for item in handed)
    return ()


def held_windows(
    pipeline: Pipeline, planned: Sequence[PlannedWindow], run: Run, now: datetime
) -> tuple[PlannedWindow, ...]:
    """Return the windows of a run, planned again unless it still holds them.

    A run that failed gives its windows back. If some of its tasks are cleared, it goes on with the
    window that it took, unless other runs have finished that since.

    Raises:
        WindowOpen: another run works on it (Transient).
    """
    if all(_is_held(pipeline, item, run.owner) for item in planned):
        return tuple(planned)
    given_back = [item.sequence for item in planned]
    _LOG.info(
        "this run has given its windows %s back since they were planned: planning again",
        given_back,
    )
    again = pipeline.plan(run, now)
    if not again:
        keep_reason(f"windows {given_back} were finished by another run, and nothing else came")
    return again


def _is_held(pipeline: Pipeline, planned: PlannedWindow, owner: str) -> bool:
    found = pipeline.ledger.windows.find(planned.sequence)
    # A sealed window was given back by its announce; the same attempt may announce it again.
    return (
        found is not None
        and found.attempt == planned.attempt
        and (found.sealed or found.owner == owner)
    )
