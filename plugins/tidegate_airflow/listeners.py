"""Hear of what happens in Airflow: create missing pools, write the notes of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.listeners import hookimpl

from tidegate_airflow.notes import write_note
from tidegate_airflow.pools import make_missing_pools

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun


@hookimpl
def on_starting(component: object) -> None:
    """Create missing pools before the first task is queued.

    Scheduler, triggerer and DAG processor start as a `Job`, whose kind is not known yet; a task
    starts as something else, and has no access to Airflow's database.
    """
    if type(component).__name__ == "Job":
        make_missing_pools()


@hookimpl
def on_dag_run_running(dag_run: DagRun) -> None:
    """Note the partition of a run."""
    write_note(dag_run)


@hookimpl
def on_dag_run_success(dag_run: DagRun) -> None:
    """Note how a run ended."""
    write_note(dag_run)


@hookimpl
def on_dag_run_failed(dag_run: DagRun) -> None:
    """Note why a run failed."""
    write_note(dag_run)
