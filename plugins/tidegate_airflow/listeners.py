"""Look after the start of Airflow's components: what the DAGs need and Airflow does not check."""

from __future__ import annotations

from airflow.listeners import hookimpl

from tidegate_airflow.pools import make_missing_pools


@hookimpl
def on_starting(component: object) -> None:
    """Make missing pools before the first task is queued.

    Scheduler, triggerer and DAG processor start as a `Job`, which does not know its kind yet; a
    task starts as something else, and has no access to Airflow's database.
    """
    if type(component).__name__ == "Job":
        make_missing_pools()
