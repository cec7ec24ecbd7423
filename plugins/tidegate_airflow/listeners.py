"""Create at the start of Airflow's components what the DAGs need and Airflow does not check."""

from __future__ import annotations

from airflow.listeners import hookimpl

from tidegate_airflow.pools import make_missing_pools


@hookimpl
def on_starting(component: object) -> None:
    """Create missing pools before the first task is queued.

    Scheduler, triggerer and DAG processor start as a `Job`, whose kind is not known yet; a task
    starts as something else, and has no access to Airflow's database.
    """
    if type(component).__name__ == "Job":
        make_missing_pools()
