"""Look after the scheduler's start: what the DAGs need and Airflow does not check (AF-4.23)."""

from __future__ import annotations

from airflow.listeners import hookimpl

from tidegate_airflow.pools import make_missing_pools


@hookimpl
def on_starting(component: object) -> None:
    """Make missing pools before the first task is queued; other components start without it."""
    if getattr(component, "job_type", None) == "SchedulerJob":
        make_missing_pools()
